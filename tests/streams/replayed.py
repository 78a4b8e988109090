"""All samples of a stream, as the engine would draw them."""

import jax
import numpy as np

from mainstem import random
from mainstem.base import At, cast


def replayed(stream, steps, seed=0):
    """The samples of the first steps, leaves [steps, clients, ...], in float64."""
    t, ks = np.arange(1, steps + 1, dtype=np.int32), np.arange(stream.clients, dtype=np.int32)

    def at_step(known, pieces, t):
        keys = jax.vmap(lambda k: random.fold(random.root(seed), random.STREAM, t, k))(ks)
        return stream.samples(known, pieces, At(t, ks, keys))

    with jax.enable_x64(True):
        over_steps = jax.jit(jax.vmap(at_step, in_axes=(None, 0, 0)))
        pieces = cast(stream.chunk(seed, 1, steps), "float64")
        return jax.device_get(over_steps(cast(stream.known(seed), "float64"), pieces, t))
