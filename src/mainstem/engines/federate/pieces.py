"""Messages larger than the server takes: cut into pieces, put together again at the other end."""

import struct
from typing import NamedTuple

from mainstem.engines.federate.wire import Reason, Refused

_PIECE = struct.Struct("<4sIII")  # mark, which message, which piece of it, of how many
_MARK = b"mspc"


def cut(data: bytes, most: int, number: int) -> list[bytes]:
    """`data` itself if it fits, else pieces of at most `most` bytes of the message with this `number`.

    >>> [len(piece) for piece in cut(bytes(100), 46, 7)]
    [46, 46, 46, 26]
    """
    if len(data) <= most:
        return [data]
    room = most - _PIECE.size
    count = -(-len(data) // room)
    return [
        _PIECE.pack(_MARK, number % 2**32, n, count) + data[n * room : (n + 1) * room]
        for n in range(count)
    ]


class Place(NamedTuple):
    """Where a piece belongs."""

    number: int
    piece: int
    of: int


def place(data: bytes) -> Place | None:
    """Where a piece belongs; None: it is a whole message."""
    if data[:4] != _MARK or len(data) < _PIECE.size:
        return None
    return Place(*_PIECE.unpack_from(data)[1:])


class Joiner:
    """Puts one sender's pieces together, one message at a time, of at most `most` bytes."""

    def __init__(self, most: int):
        self.most = most
        self.forget()

    def forget(self) -> None:
        """Drop what is there of an unfinished message."""
        self._now: tuple[int, int] | None = None
        self._pieces: list[bytes] = []
        self._size = 0

    @property
    def waiting(self) -> bool:
        """Whether a message is unfinished."""
        return bool(self._pieces)

    def add(self, data: bytes) -> bytes | None:
        """The message that `data` completes, if it does. A piece out of turn is refused."""
        where = place(data)
        if where is None:
            self.forget()
            if len(data) > self.most:
                raise Refused(Reason.OVERSIZED, f"{len(data)} bytes, {self.most} at most")
            return data
        if where.piece == 0:
            self.forget()
            self._now = where.number, where.of
        if self._now != (where.number, where.of) or where.piece != len(self._pieces):
            self.forget()
            raise Refused(Reason.MALFORMED, "a piece out of turn")
        self._size += len(data) - _PIECE.size
        if self._size > self.most:
            self.forget()
            raise Refused(Reason.OVERSIZED, f"more than {self.most} bytes")
        self._pieces.append(data[_PIECE.size :])
        if len(self._pieces) < where.of:
            return None
        whole = b"".join(self._pieces)
        self.forget()
        return whole
