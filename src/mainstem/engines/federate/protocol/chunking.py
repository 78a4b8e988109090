"""Messages larger than the server accepts: split into chunks, and reassembled by the receiver."""

import struct
from typing import NamedTuple

from mainstem.engines.federate.protocol.messages import Reason, Refused

_HEADER = struct.Struct("<4sIII")  # mark, message number, chunk index, number of chunks
_MARK = b"mspc"


def split(data: bytes, most: int, number: int) -> list[bytes]:
    """Splits message `number` into chunks of at most `most` bytes. A message that fits is returned as it is.

    >>> [len(chunk) for chunk in split(bytes(100), 46, 7)]
    [46, 46, 46, 26]
    """
    if len(data) <= most:
        return [data]
    room = most - _HEADER.size
    count = -(-len(data) // room)
    return [
        _HEADER.pack(_MARK, number % 2**32, n, count) + data[n * room : (n + 1) * room]
        for n in range(count)
    ]


class Chunk(NamedTuple):
    """The header of a chunk."""

    number: int  # of the message
    position: int  # among the chunks of the message
    total: int  # chunks in the message


def chunk_of(data: bytes) -> Chunk | None:
    """The header of a chunk; None if `data` is a whole message."""
    if data[:4] != _MARK or len(data) < _HEADER.size:
        return None
    return Chunk(*_HEADER.unpack_from(data)[1:])


class Reassembler:
    """Reassembles the messages of one sender, one at a time and of at most `most` bytes."""

    def __init__(self, most: int):
        self.most = most
        self.reset()

    def reset(self) -> None:
        """Discards the chunks of an unfinished message."""
        self._current: tuple[int, int] | None = None
        self._chunks: list[bytes] = []
        self._size = 0

    @property
    def waiting(self) -> bool:
        """Whether a message is unfinished."""
        return bool(self._chunks)

    def add(self, data: bytes) -> bytes | None:
        """Takes what was received. Returns the message that it completes, if any; refuses a chunk out of order."""
        chunk = chunk_of(data)
        if chunk is None:
            self.reset()
            if len(data) > self.most:
                raise Refused(Reason.OVERSIZED, f"{len(data)} bytes, {self.most} at most")
            return data
        if chunk.position == 0:
            self.reset()
            self._current = chunk.number, chunk.total
        if self._current != (chunk.number, chunk.total) or chunk.position != len(self._chunks):
            self.reset()
            raise Refused(Reason.CHUNK, f"chunk {chunk.position} of {chunk.total}")
        self._size += len(data) - _HEADER.size
        if self._size > self.most:
            self.reset()
            raise Refused(Reason.OVERSIZED, f"more than {self.most} bytes")
        self._chunks.append(data[_HEADER.size :])
        if len(self._chunks) < chunk.total:
            return None
        whole = b"".join(self._chunks)
        self.reset()
        return whole
