"""Contract of codecs."""

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import random
from mainstem.base import Codec
from mainstem.testing.comparisons import promised, same
from mainstem.testing.values import check_value

DRAWS = 400


def check_codec(codec: Codec, size: int = 40) -> None:
    """Checks the number of bytes, the code after a round trip, and the declared errors.

    >>> from mainstem import parts
    >>> check_codec(parts.half())
    """
    check_value(codec)
    codec.check(size)
    for dtype, word in (("float32", 32), ("float64", 64)):
        with jax.enable_x64(word == 64):
            _travels(codec, size, dtype, word)
    with jax.enable_x64(True):
        _errs_as_declared(codec, size)


def _travels(codec: Codec, size: int, dtype: str, word: int) -> None:
    vector = np.random.default_rng(3).normal(size=size).astype(dtype)
    code = codec.encode(jnp.asarray(vector), random.fold(random.root(0), 1))
    data = codec.pack(jax.device_get(code))
    nbytes = codec.nbytes(size, word)
    promised(len(data) == nbytes, f"{codec}: packed bytes", len(data), nbytes)
    bits, sent = codec.bits(size, word), 8 * len(data)
    promised(bits <= sent + 1e-9, f"{codec}: bits, at most those sent", bits, sent)
    again = codec.unpack(data, size, np.dtype(dtype))
    for one, other in zip(jax.tree.leaves(code), jax.tree.leaves(again), strict=True):
        same(one, other, f"{codec}: a code, before and after packing")
    decoded = np.asarray(codec.decode(code, size))
    promised(decoded.shape == (size,), f"{codec}: the decoded shape", decoded.shape, (size,))
    promised(decoded.dtype == np.dtype(dtype), f"{codec}: the decoded dtype", decoded.dtype, dtype)
    zero = codec.decode(codec.encode(jnp.zeros(size, dtype), jnp.asarray(random.root(1))), size)
    assert not np.any(zero), f"{codec} makes something out of nothing"
    if codec.linear:
        same(decoded, vector, f"{codec}: decoded and given, as it is declared linear")


def _errs_as_declared(codec: Codec, size: int) -> None:
    vector = jnp.asarray(np.random.default_rng(4).normal(size=size))
    keys = jax.vmap(lambda n: random.fold(random.root(5), n))(jnp.arange(DRAWS))
    seen = np.asarray(jax.vmap(lambda key: codec.decode(codec.encode(vector, key), size))(keys))
    errors = np.sum((seen - vector) ** 2, axis=1)
    square = float(jnp.sum(vector**2))
    declared = codec.variance(size)
    if declared is not None:
        spread = 4 * errors.std() / np.sqrt(DRAWS)
        most = declared * square + spread + 1e-12
        promised(errors.mean() <= most, f"{codec}: the mean squared error", errors.mean(), most)
    if codec.unbiased:
        off = np.abs(seen.mean(axis=0) - vector)
        most = 5 * seen.std(axis=0) / np.sqrt(DRAWS) + 1e-9
        worst = int(np.argmax(off - most))
        promised(np.all(off <= most), f"{codec}: the bias, at most", off[worst], most[worst])
