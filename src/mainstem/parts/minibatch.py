"""Mini-batches: some of the samples that a client holds, drawn without replacement."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import random
from mainstem.base import At, Batch, of_client
from mainstem.random import Key


def minibatch(held: Batch, sizes: Any, at: At, e: Any) -> Batch:
    """The mini-batch of epoch e, with the size for client k, from the samples that it holds; `sizes` are known
    when the program is compiled, so that only as many gradients are computed."""
    size, most = of_client(jnp.asarray(sizes, jnp.int32), at.k), int(np.max(sizes))
    drawn = chosen(random.fold(at.key, e), held.weights > 0, size)
    if most >= len(drawn):
        return held._replace(weights=drawn.astype(held.weights.dtype) / size)
    places = jnp.nonzero(drawn, size=most, fill_value=0)[0]
    real = jnp.arange(most) < jnp.sum(drawn, dtype=jnp.int32)
    items = jax.tree.map(lambda x: x[places], held.items)
    return Batch(items, real.astype(held.weights.dtype) / size)


def chosen(key: Key, real: Any, size: Any) -> jax.Array:
    """Which of the `real` samples are in a random set of this size: those with the smallest draws.

    The last bits of a draw are its index, so that no two draws are equal. The bound with `size` draws
    below it is found bit by bit, which is faster than sorting.
    """
    places = max(1, (len(real) - 1).bit_length())
    draws = (random.bits(key, real.shape) >> (places + 1)) << places
    draws = draws | jnp.arange(len(real), dtype=jnp.uint32)

    def raised(n: int, bound: Any) -> Any:
        higher = bound | (jnp.uint32(2**30) >> jnp.uint32(n))
        below = jnp.sum(real & (draws < higher), dtype=jnp.int32)
        return jnp.where(below <= size, higher, bound)

    return real & (draws < jax.lax.fori_loop(0, 31, raised, jnp.uint32(0)))
