"""Counter-based randomness: every draw is a hash of (seed, purpose, step, client, coordinate).

Nothing is stored and nothing is consumed, so a client on another machine draws what its simulated
twin draws, and a chunk that is run again draws the same numbers. A key is two 32-bit words; it is
also a valid raw key for `jax.random`, whose generators are slower and can be used where that does
not matter.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Key = jax.Array  # uint32[2]

INIT, STREAM, DECIDE, LEARN, UPLOAD, CODEC, PARTICIPATE = range(1, 8)  # the purposes of a draw

_GOLDEN = np.uint32(0x9E3779B9)


def root(seed: int) -> np.ndarray:
    """The key of a run, from a seed of up to 64 bits.

    >>> root(7).tolist()
    [7, 0]
    """
    return np.array([seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF], dtype=np.uint32)


def mix(word: jax.Array) -> jax.Array:
    """A bijection of 32 bits in which every input bit moves every output bit (Wellons' lowbias32)."""
    word = word ^ (word >> 16)
    word = word * np.uint32(0x7FEB352D)
    word = word ^ (word >> 15)
    word = word * np.uint32(0x846CA68B)
    return word ^ (word >> 16)


def fold(key: Any, *words: Any) -> Key:
    """The key that `key` becomes with each of `words` (a purpose, a step, a client) in turn.

    For one key, different words never give the same key.
    """
    first, second = jnp.asarray(key[0], jnp.uint32), jnp.asarray(key[1], jnp.uint32)
    for word in words:
        first = mix((first ^ jnp.asarray(word).astype(jnp.uint32)) + _GOLDEN)
        second = mix(second ^ ((first << 15) | (first >> 17)))
    return jnp.stack([first, second])


def bits(key: Key, shape: tuple[int, ...] = ()) -> jax.Array:
    """Independent 32-bit words, one for each coordinate of `shape`."""
    count = math.prod(shape)
    coordinate = jax.lax.iota(jnp.uint32, max(count, 1)).reshape(shape) * _GOLDEN
    return mix(mix(coordinate + key[0]) ^ key[1])


def uniform(key: Key, shape: tuple[int, ...] = (), dtype: Any = None) -> jax.Array:
    """Uniform on [0, 1), made of 24 bits, so that float32 holds it exactly and 1.0 never appears."""
    dtype = jnp.result_type(float) if dtype is None else dtype
    return (bits(key, shape) >> 8).astype(dtype) * np.asarray(2.0**-24, dtype)


def normal(key: Key, shape: tuple[int, ...] = (), dtype: Any = None) -> jax.Array:
    """Standard normal, by the inverse of its distribution function (24 bits: |x| below 5.5)."""
    dtype = jnp.result_type(float) if dtype is None else dtype
    inside = uniform(key, shape, dtype) + np.asarray(2.0**-25, dtype)
    return np.asarray(math.sqrt(2), dtype) * jax.lax.erf_inv(2 * inside - 1)
