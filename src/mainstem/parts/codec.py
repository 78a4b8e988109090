"""Codecs: how a body travels. Each knows its bits by formula and packs real bytes."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check
from mainstem.base import Codec, Params
from mainstem.errors import BadData
from mainstem.random import Key
from mainstem.spec import recorded


def _any_size(size: int) -> None:
    """Fits every body."""


@recorded
def plain() -> Codec:
    """The numbers as they are: 32 (or 64) bits each."""
    return Codec(
        encode=lambda vector, key: vector,
        decode=lambda code, size: code,
        bits=lambda size, word: float(word * size),
        nbytes=lambda size, word: word // 8 * size,
        pack=lambda code: np.asarray(code).tobytes(),
        unpack=lambda data, size, dtype: np.frombuffer(data, dtype, size),
        check=_any_size,
        linear=True,
    )


@recorded
def half() -> Codec:
    """Half precision: 16 bits each."""
    largest = float(np.finfo(np.float16).max)
    return Codec(
        encode=lambda vector, key: jnp.clip(vector, -largest, largest).astype(jnp.float16),
        decode=lambda code, size: code.astype(jnp.result_type(float)),
        bits=lambda size, word: 16.0 * size,
        nbytes=lambda size, word: 2 * size,
        pack=lambda code: np.asarray(code).tobytes(),
        unpack=lambda data, size, dtype: np.frombuffer(data, np.float16, size),
        check=_any_size,
    )


@recorded
def top_k(count: int) -> Codec:
    """The `count` coordinates of largest magnitude, with their positions; the others are zero."""
    count = check.integer("top_k", "count", count, least=1)

    def encode(vector: Params, key: Key) -> Any:
        _, positions = jax.lax.top_k(jnp.abs(vector), count)
        positions = jnp.sort(positions)
        return positions.astype(jnp.uint32), vector[positions]

    def decode(code: Any, size: int) -> Params:
        positions, values = code
        return jnp.zeros(size, values.dtype).at[positions].set(values)

    def pack(code: Any) -> bytes:
        positions, values = code
        return np.asarray(positions, np.uint32).tobytes() + np.asarray(values).tobytes()

    def unpack(data: bytes, size: int, dtype: Any) -> Any:
        positions = np.frombuffer(data, np.uint32, count)
        if positions.max(initial=0) >= size or np.unique(positions).size != count:
            raise BadData(f"top_k: {count} different places below {size} are wanted")
        return positions, np.frombuffer(data, dtype, count, offset=4 * count)

    def fits(size: int) -> None:
        if count > size:
            raise check.refuse("top_k", "count", f"be at most the {size} parameters", count)

    return Codec(
        encode,
        decode,
        bits=lambda size, word: count * (word + math.log2(size)),
        nbytes=lambda size, word: count * (word // 8 + 4),
        pack=pack,
        unpack=unpack,
        check=fits,
    )
