r"""Quantiser: the (s, b) stochastic quantiser (Kwon et al. 2023, Definition 2).

A message of D numbers is divided into b contiguous blocks of near-equal size. An entry v of a block B
becomes |B|_2 sign(v) m / s, where m is one of the two integers around s |v| / |B|_2, drawn so that
the result is unbiased. A message takes a word for each block and 1 + log2(s + 1) bits for each entry, and
its variance is at most min(d / s^2, sqrt(d) / s) |v|^2 with d = ceil(D / b).
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from mainstem import check, random
from mainstem.base import Codec, Params
from mainstem.random import Key
from mainstem.value import integer, value


class Quantised(NamedTuple):
    """An encoded message: a norm for each block, a signed level for each entry."""

    norms: Any
    levels: Any  # int32 in [-s, s]


@value
class quantiser(Codec):
    """The quantiser with `levels` s and `blocks` b.

    >>> import jax.numpy as jnp
    >>> from mainstem import random
    >>> codec = quantiser(levels=3, blocks=2)
    >>> code = codec.encode(jnp.array([3.0, 4.0, 0.0, 0.0]), random.root(0))
    >>> code.norms.tolist()
    [5.0, 0.0]
    >>> codec.bits(34826, 32)
    104542.0
    """

    levels: int = integer(least=1, most=2**16 - 1)
    blocks: int = integer(default=1, least=1)

    unbiased = True

    def encode(self, vector: Params, key: Key) -> Quantised:
        power = _power(vector @ vector)
        norms = power * _norms(vector * (1 / power), self.blocks)
        spread = _spread(norms, vector.size, self.blocks)
        stretch = self.levels / jnp.where(spread > 0, spread, 1)
        draws = random.uniform(key, (vector.size,), vector.dtype)
        drawn = (jnp.abs(vector) * stretch + draws).astype(jnp.int32)  # rounds down
        drawn = jnp.minimum(drawn, self.levels)  # an entry as large as its block can round to s + 1
        return Quantised(norms, jnp.where(vector < 0, -drawn, drawn))

    def decode(self, code: Quantised, size: int) -> Params:
        return _spread(code.norms, size, self.blocks) * (code.levels * (1 / self.levels))

    def bits(self, size: int, word: int) -> float:
        return word * self.blocks + size * (1 + math.log2(self.levels + 1))

    def nbytes(self, size: int, word: int) -> int:
        return word // 8 * self.blocks + _sign_bytes(size) + 8 * _words(size, self.levels)

    def pack(self, code: Quantised) -> bytes:
        """Norms, then signs as bits, then levels as digits of 64-bit numbers to the base s + 1."""
        signed = np.asarray(code.levels)
        digits = _digits(self.levels)
        padded = np.zeros(_words(signed.size, self.levels) * digits, np.uint64)
        padded[: signed.size] = np.abs(signed)
        words = np.zeros(padded.size // digits, np.uint64)
        for digit in reversed(range(digits)):
            words = words * np.uint64(self.levels + 1) + padded[digit::digits]
        signs = np.packbits(signed < 0)
        return np.asarray(code.norms).tobytes() + signs.tobytes() + words.tobytes()

    def unpack(self, data: bytes, size: int, dtype: Any) -> Quantised:
        norms = np.frombuffer(data, dtype, self.blocks)
        start = norms.nbytes
        signs = np.frombuffer(data, np.uint8, _sign_bytes(size), offset=start)
        negative = np.unpackbits(signs, count=size).astype(bool)
        words = np.frombuffer(data, np.uint64, offset=start + signs.nbytes)
        digits, base = _digits(self.levels), np.uint64(self.levels + 1)
        magnitude = np.empty((words.size, digits), np.int32)
        for digit in range(digits):
            magnitude[:, digit] = words % base
            words = words // base
        found = magnitude.reshape(-1)[:size]
        return Quantised(norms, np.where(negative, -found, found))

    def check(self, size: int) -> None:
        if self.blocks > size:
            wanted = f"be at most the {size} parameters"
            raise check.refuse("quantiser", "blocks", wanted, self.blocks)

    def variance(self, size: int) -> float | None:
        longest = math.ceil(size / self.blocks)
        return min(longest / self.levels**2, math.sqrt(longest) / self.levels)


def _power(total: Any) -> Any:
    """A power of two to divide by before squaring: 1, unless the squares are near the limits of the dtype."""
    limit = jnp.finfo(total.dtype).maxexp
    large, small = total > 2.0 ** (limit * 3 // 4), total < 2.0 ** -(limit // 3)
    return jnp.where(large, 2.0 ** (limit // 2 + 16), jnp.where(small, 2.0 ** -(limit // 2), 1.0))


def _norms(vector: Params, blocks: int) -> Params:
    """The norm of each block: the first D mod b blocks are one entry longer than the others."""
    squares = [
        jnp.matmul(part**2, jnp.ones(part.shape[1], part.dtype), precision="highest")
        for part in _blocks(vector, blocks)
    ]
    return jnp.sqrt(jnp.concatenate(squares))  # a product with ones is faster than a sum on the CPU


def _blocks(vector: Params, blocks: int) -> tuple[Params, Params]:
    """The longer blocks as rows, and the shorter blocks as rows."""
    short, longer = divmod(vector.size, blocks)
    cut = longer * (short + 1)
    return vector[:cut].reshape(longer, short + 1), vector[cut:].reshape(blocks - longer, short)


def _spread(norms: Params, size: int, blocks: int) -> Params:
    """The norm of its block, for each entry."""
    short, longer = divmod(size, blocks)
    parts = (norms[:longer], short + 1), (norms[longer:], short)
    rows = [jnp.broadcast_to(part[:, None], (part.size, width)).ravel() for part, width in parts]
    return jnp.concatenate(rows)


def _digits(levels: int) -> int:
    """How many levels (0 to s) fit into one 64-bit word."""
    count = 1
    while (levels + 1) ** (count + 1) <= 2**64:
        count += 1
    return count


def _words(size: int, levels: int) -> int:
    return -(-size // _digits(levels))


def _sign_bytes(size: int) -> int:
    return -(-size // 8)
