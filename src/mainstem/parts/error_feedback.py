"""Error feedback: what a codec leaves out of a message is added to the client's next message."""

from typing import Any

from mainstem.base import Codec, Params
from mainstem.random import Key
from mainstem.value import part, value


@value
class error_feedback(Codec):
    r"""The code of `codec`, whose error the client adds to its next message (Karimireddy et al. 2019).

    A sampled client sends :math:`Q(g + e)` in place of :math:`Q(g)`, and keeps

    .. math:: e \leftarrow g + e - Q(g + e);

    a client that is not sampled keeps its e. So nothing that a biased codec such as `top_k` leaves out is
    lost. For algorithms that send gradients: the error of a model is no part of the next model.

    >>> import mainstem as ms
    >>> ms.fedogd(step=0.1, codec=error_feedback(ms.parts.top_k(10)))
    fedogd(step=0.1, codec=error_feedback(codec=top_k(count=10)))
    """

    codec: Codec = part(Codec, "top_k(10)")

    remembers = True

    def encode(self, vector: Params, key: Key) -> Any:
        return self.codec.encode(vector, key)

    def decode(self, code: Any, size: int) -> Params:
        return self.codec.decode(code, size)

    def bits(self, size: int, word: int) -> float:
        return self.codec.bits(size, word)

    def nbytes(self, size: int, word: int) -> int:
        return self.codec.nbytes(size, word)

    def pack(self, code: Any) -> bytes:
        return self.codec.pack(code)

    def unpack(self, data: bytes, size: int, dtype: Any) -> Any:
        return self.codec.unpack(data, size, dtype)

    def check(self, size: int) -> None:
        self.codec.check(size)

    def variance(self, size: int) -> float | None:
        return self.codec.variance(size)
