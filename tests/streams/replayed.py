"""All samples of a stream, as the engine would draw them."""

import jax
import numpy as np

from mainstem import random
from mainstem.base import At, cast


def replayed(stream, steps, seed=0):
    """The samples of the first steps, leaves [steps, clients, ...], in float64."""
    t, ks = np.arange(1, steps + 1, dtype=np.int32), np.arange(stream.clients, dtype=np.int32)

    def at_step(device, drawn, pieces, t):
        keys = jax.vmap(lambda k: random.fold(random.root(seed), random.STREAM, t, k))(ks)
        return device.samples(pieces, At(t, ks, keys), drawn)

    with jax.enable_x64(True):
        over_steps = jax.jit(jax.vmap(at_step, in_axes=(None, None, 0, 0)))
        sent = stream.device, stream.drawn(seed), stream.chunk(seed, 1, steps)
        return jax.device_get(over_steps(*cast(sent, "float64"), t))
