"""Counter-based randomness: every draw is a hash of (seed, purpose, step, client, coordinate).

There is no generator state: a client on another machine draws the same numbers as in a simulation,
and so does a chunk that is run again. A key is two 32-bit words. It is also a valid raw key for
`jax.random`, whose generators are slower.
"""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Key = jax.Array  # uint32[2]

# The purposes of a draw.
INIT, STREAM, DECIDE, LEARN, UPLOAD, CODEC, PARTICIPATE, MEASURE, BROADCAST, DEAL = range(1, 11)

_GOLDEN = np.uint32(0x9E3779B9)


def root(seed: int) -> np.ndarray:
    """The key of a run, from a seed of up to 64 bits.

    >>> root(7).tolist()
    [7, 0]
    """
    return np.array([seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF], dtype=np.uint32)


def mix(word: jax.Array, salt: Any = 0) -> jax.Array:
    """A bijection of 32 bits in which every input bit affects every output bit (Wellons' lowbias32).

    Another `salt` gives another bijection.
    """
    word = word ^ (word >> 16)
    word = word * np.uint32(0x7FEB352D) ^ salt
    word = word ^ (word >> 15)
    word = word * np.uint32(0x846CA68B)
    return word ^ (word >> 16)


def fold(key: Any, *words: Any) -> Key:
    """Folds each of `words` (a purpose, a step, a client) into `key`, in turn.

    For one key, different words give different keys. For the same words, so do the roots of different
    32-bit seeds.
    """
    folded = jnp.asarray(key, jnp.uint32)
    for word in words:
        folded = _folded(folded, jnp.asarray(word).astype(jnp.uint32))
    return folded


@functools.partial(jax.jit, inline=True)  # traced once, however often it is used
def _folded(key: Key, word: jax.Array) -> Key:
    first = mix((key[0] ^ word) + _GOLDEN)
    second = mix((key[1] + key[0] * _GOLDEN) ^ ((first << 15) | (first >> 17)))
    return jnp.stack([first, second])


def bits(key: Key, shape: tuple[int, ...] = ()) -> jax.Array:
    """Independent 32-bit words, one for each coordinate of `shape`."""
    count = math.prod(shape)
    coordinate = jax.lax.iota(jnp.uint32, max(count, 1)).reshape(shape) * _GOLDEN
    return mix(coordinate + key[0], key[1])


def uniform(key: Key, shape: tuple[int, ...] = (), dtype: Any = None) -> jax.Array:
    """Uniform on [0, 1), with 24 random bits: float32 represents it exactly, and 1.0 never occurs."""
    dtype = jnp.result_type(float) if dtype is None else dtype
    return (bits(key, shape) >> 8).astype(dtype) * np.asarray(2.0**-24, dtype)


def normal(key: Key, shape: tuple[int, ...] = (), dtype: Any = None) -> jax.Array:
    """Standard normal, by the inverse of its distribution function (24 bits: |x| below 5.5).

    Always computed in float32, so that runs of either dtype draw the same numbers.
    """
    dtype = jnp.result_type(float) if dtype is None else dtype
    draws = jax.lax.optimization_barrier(uniform(key, shape, jnp.float32))  # slower if fused
    middle = 2 * draws + np.float32(2.0**-24 - 1)
    return (np.float32(math.sqrt(2)) * _erf_inv(middle)).astype(dtype)


_NEAR = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_FAR = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


@functools.partial(jax.jit, inline=True)
def _erf_inv(x: jax.Array) -> jax.Array:
    """The inverse error function in single precision (Giles 2010, Approximating the erfinv function, Table 5)."""
    w = -jnp.log((1 - x) * (1 + x))
    near, far = jnp.full_like(w, _NEAR[0]), jnp.full_like(w, _FAR[0])
    for a, b in zip(_NEAR[1:], _FAR[1:], strict=True):
        near = near * (w - np.float32(2.5)) + np.float32(a)
        far = far * (jnp.sqrt(w) - 3) + np.float32(b)
    return jnp.where(w < 5, near, far) * x
