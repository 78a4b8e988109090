"""Codecs: encode a message as arrays or bytes, and count its bits."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check
from mainstem.base import Codec, Params
from mainstem.errors import BadData
from mainstem.random import Key
from mainstem.value import integer, value

LARGEST_HALF = float(np.finfo(np.float16).max)


@value
class plain(Codec):
    """No compression: 32 (or 64) bits for each number.

    >>> plain().bits(650, 32)
    20800.0
    """

    linear = True
    unbiased = True

    def encode(self, vector: Params, key: Key) -> Any:
        return vector

    def decode(self, code: Any, size: int) -> Params:
        return code

    def bits(self, size: int, word: int) -> float:
        return float(word * size)

    def nbytes(self, size: int, word: int) -> int:
        return word // 8 * size

    def pack(self, code: Any) -> bytes:
        return np.asarray(code).tobytes()

    def unpack(self, data: bytes, size: int, dtype: Any) -> Any:
        return np.frombuffer(data, dtype, size)

    def variance(self, size: int) -> float | None:
        return 0.0


@value
class half(Codec):
    """Half precision: 16 bits for each number. In a float64 run it is rounded to single precision first, because
    some processors convert in two steps and others in one: so all of them send the same bits.

    >>> half().nbytes(650, 32)
    1300
    """

    def encode(self, vector: Params, key: Key) -> Any:
        clipped = jnp.clip(vector, -LARGEST_HALF, LARGEST_HALF)
        return clipped.astype(jnp.float32).astype(jnp.float16)

    def decode(self, code: Any, size: int) -> Params:
        return code.astype(jnp.result_type(float))

    def bits(self, size: int, word: int) -> float:
        return 16.0 * size

    def nbytes(self, size: int, word: int) -> int:
        return 2 * size

    def pack(self, code: Any) -> bytes:
        return np.asarray(code).tobytes()

    def unpack(self, data: bytes, size: int, dtype: Any) -> Any:
        return np.frombuffer(data, np.float16, size)

    def variance(self, size: int) -> float | None:
        return 2.0**-22  # the relative error of a number is at most 2^-11


@value
class top_k(Codec):
    """The `count` coordinates of largest magnitude, with their positions; the others are zero.

    >>> codec = top_k(1)
    >>> codec.decode(codec.encode(jnp.array([1.0, -3.0]), None), 2).tolist()
    [0.0, -3.0]
    """

    count: int = integer(least=1)

    def encode(self, vector: Params, key: Key) -> Any:
        _, positions = jax.lax.top_k(jnp.abs(vector), self.count)
        positions = jnp.sort(positions)
        return positions.astype(jnp.uint32), vector[positions]

    def decode(self, code: Any, size: int) -> Params:
        positions, values = code
        return jnp.zeros(size, values.dtype).at[positions].set(values)

    def bits(self, size: int, word: int) -> float:
        return self.count * (word + math.log2(size))

    def nbytes(self, size: int, word: int) -> int:
        return self.count * (word // 8 + 4)

    def pack(self, code: Any) -> bytes:
        positions, values = code
        return np.asarray(positions, np.uint32).tobytes() + np.asarray(values).tobytes()

    def unpack(self, data: bytes, size: int, dtype: Any) -> Any:
        count = self.count
        positions = np.frombuffer(data, np.uint32, count)
        if positions.max(initial=0) >= size or np.unique(positions).size != count:
            raise BadData(f"top_k: {count} different places below {size} are wanted")
        return positions, np.frombuffer(data, dtype, count, offset=4 * count)

    def check(self, size: int) -> None:
        if self.count > size:
            raise check.refuse("top_k", "count", f"be at most the {size} parameters", self.count)

    def variance(self, size: int) -> float | None:
        return 1 - self.count / size
