r"""The (s, b) stochastic quantiser (Kwon et al. 2023, Definition 2).

A body of D numbers is cut into b contiguous blocks of near-equal size. An entry v of a block B
becomes |B|_2 sign(v) m / s, where m is one of the two integers around s |v| / |B|_2, drawn so that
the result is unbiased. It costs a word for each block and 1 + log2(s + 1) bits for each entry, and
its variance is at most min(d / s^2, sqrt(d) / s) |v|^2 with d = ceil(D / b).
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from mainstem import check, random
from mainstem.base import Codec, Params
from mainstem.random import Key
from mainstem.spec import recorded


class Quantised(NamedTuple):
    """A body as it travels: a norm for each block, a signed level for each entry."""

    norms: Any
    levels: Any  # int32 in [-s, s]


@recorded
def quantiser(levels: int, blocks: int = 1) -> Codec:
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
    levels = check.integer("quantiser", "levels", levels, least=1, most=2**16 - 1)
    blocks = check.integer("quantiser", "blocks", blocks, least=1)

    def encode(vector: Params, key: Key) -> Quantised:
        norms = _norms(vector, blocks)
        spread = _spread(norms, vector.size, blocks)
        stretch = levels / jnp.where(spread > 0, spread, 1)
        draws = random.uniform(key, (vector.size,), vector.dtype)
        drawn = (jnp.abs(vector) * stretch + draws).astype(jnp.int32)  # rounds down
        drawn = jnp.minimum(drawn, levels)  # rounding can lift an entry as large as its block
        return Quantised(norms, jnp.where(vector < 0, -drawn, drawn))

    def decode(code: Quantised, size: int) -> Params:
        return _spread(code.norms, size, blocks) * (code.levels * (1 / levels))

    def fits(size: int) -> None:
        if blocks > size:
            raise check.refuse("quantiser", "blocks", f"be at most the {size} parameters", blocks)

    return Codec(
        encode,
        decode,
        bits=lambda size, word: word * blocks + size * (1 + math.log2(levels + 1)),
        nbytes=lambda size, word: word // 8 * blocks + _sign_bytes(size) + 8 * _words(size, levels),
        pack=lambda code: _pack(code, levels),
        unpack=lambda data, size, dtype: _unpack(data, size, dtype, levels, blocks),
        check=fits,
    )


def _norms(vector: Params, blocks: int) -> Params:
    """The norm of each block: the first D mod b blocks are one entry longer than the others."""
    squares = [
        jnp.matmul(part**2, jnp.ones(part.shape[1], part.dtype), precision="highest")
        for part in _blocks(vector, blocks)
    ]
    return jnp.sqrt(jnp.concatenate(squares))  # a product with ones: the faster sum on the CPU


def _blocks(vector: Params, blocks: int) -> tuple[Params, Params]:
    """The longer blocks as rows, and the shorter ones."""
    short, longer = divmod(vector.size, blocks)
    cut = longer * (short + 1)
    return vector[:cut].reshape(longer, short + 1), vector[cut:].reshape(blocks - longer, short)


def _spread(norms: Params, size: int, blocks: int) -> Params:
    """Each entry's block norm."""
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


def _pack(code: Quantised, levels: int) -> bytes:
    """Norms, then signs as bits, then levels as digits of 64-bit numbers to the base s + 1."""
    signed = np.asarray(code.levels)
    digits = _digits(levels)
    padded = np.zeros(_words(signed.size, levels) * digits, np.uint64)
    padded[: signed.size] = np.abs(signed)
    words = np.zeros(padded.size // digits, np.uint64)
    for digit in reversed(range(digits)):
        words = words * np.uint64(levels + 1) + padded[digit::digits]
    return np.asarray(code.norms).tobytes() + np.packbits(signed < 0).tobytes() + words.tobytes()


def _unpack(data: bytes, size: int, dtype: Any, levels: int, blocks: int) -> Quantised:
    norms = np.frombuffer(data, dtype, blocks)
    start = norms.nbytes
    signs = np.frombuffer(data, np.uint8, _sign_bytes(size), offset=start)
    negative = np.unpackbits(signs, count=size).astype(bool)
    words = np.frombuffer(data, np.uint64, offset=start + signs.nbytes)
    digits, base = _digits(levels), np.uint64(levels + 1)
    magnitude = np.empty((words.size, digits), np.int32)
    for digit in range(digits):
        magnitude[:, digit] = words % base
        words = words // base
    found = magnitude.reshape(-1)[:size]
    return Quantised(norms, np.where(negative, -found, found))
