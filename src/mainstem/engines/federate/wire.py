"""What crosses the network: uploads and broadcasts as bytes, with a header and a checksum.

An upload is a fixed header and the codec's packed bytes; a broadcast is a fixed header, how far each client
is merged, and the model. Both are little-endian. Nothing is unpickled, and neither is believed before its
checksum, its run and its lengths are right. A hub's sign of life has no checksum: it changes no state.
"""

import enum
import functools
import struct
import zlib
from typing import NamedTuple

import numpy as np

from mainstem.errors import MainstemError

VERSION = 1
_UPLOAD = struct.Struct("<4sB8s4sIQQddBI")  # the checksum last, of everything but itself
_BROADCAST = struct.Struct("<4sB8sQQIII")
_UP, _DOWN = b"msup", b"msdn"
LARGEST = 2**34  # bytes of a broadcast
SHORT = 2**16  # bytes of a message of which many may be under way or remembered
SLACK = 1024  # bytes of the largest message that are the broker's
LEFT = b"left"  # a client's last sign of life
_STEP = struct.Struct("<Q")
OVERHEAD = _UPLOAD.size  # bytes of an upload that are not the body


class Reason(enum.StrEnum):
    """Why an upload is refused."""

    MALFORMED = "malformed"
    CHECKSUM = "checksum"
    OVERSIZED = "oversized"
    RUN = "wrong run"
    CLIENT = "wrong client"
    CODEC = "wrong codec"
    SHAPE = "wrong shape"
    ROUND = "wrong round"
    VERSION = "unknown model"
    REPLAYED = "replayed"
    STALE = "stale"
    NOT_FINITE = "not finite"
    QUARANTINED = "quarantined"


class Refused(MainstemError):
    """A message that must not touch any state."""

    def __init__(self, reason: Reason, told: str = ""):
        super().__init__(f"{reason}: {told}" if told else str(reason))
        self.reason = reason


class Upload(NamedTuple):
    """What a client says at a sync. Without a body it only says that it is there."""

    run: bytes  # the digest of the run's spec, 8 bytes
    codec: bytes  # of the codec, the message's size and the dtype, 4 bytes
    client: int  # its place in the roster
    step: int  # how many labels it has learnt from: its t
    version: int  # of the model that it holds
    loss: float  # the sum of its losses so far
    weight: float
    body: bytes | None


class Broadcast(NamedTuple):
    """What the hub says to all."""

    run: bytes
    version: int  # how many merges are in it
    step: int  # t of the last of them
    merged: np.ndarray  # each client's newest step in it
    params: bytes


def pack_upload(upload: Upload) -> bytes:
    """An upload as bytes."""
    head = _UPLOAD.pack(
        _UP,
        VERSION,
        upload.run,
        upload.codec,
        upload.client,
        upload.step,
        upload.version,
        upload.loss,
        upload.weight,
        upload.body is not None,
        0,
    )[:-4]
    body = upload.body or b""
    return head + struct.pack("<I", zlib.crc32(body, zlib.crc32(head))) + body


def read_upload(data: bytes) -> Upload:
    """The upload in `data`, or `Refused`: is it ours, whole and unchanged."""
    if len(data) < OVERHEAD:
        raise Refused(Reason.MALFORMED, f"{len(data)} bytes, a header has {OVERHEAD}")
    mark, version, run, codec, client, step, held, loss, weight, has_body, check = (
        _UPLOAD.unpack_from(data)
    )
    if mark != _UP or version != VERSION or has_body not in (0, 1):
        raise Refused(Reason.MALFORMED, "is not an upload of this version")
    body = memoryview(data)[OVERHEAD:]
    if check != zlib.crc32(body, zlib.crc32(memoryview(data)[: OVERHEAD - 4])):
        raise Refused(Reason.CHECKSUM)
    if not has_body and len(body):
        raise Refused(Reason.MALFORMED, "a body where none is announced")
    said = bytes(body) if has_body else None
    return Upload(run, codec, client, step, held, loss, weight, said)


def version_of(data: bytes) -> int:
    """Of the model that the sender of a packed upload held."""
    return int(_UPLOAD.unpack_from(data)[6])


def pack_broadcast(broadcast: Broadcast) -> bytes:
    """A broadcast as bytes. How far clients are merged is mostly the same number, and packs to little."""
    behind = (broadcast.step - broadcast.merged).astype("<i8").tobytes()
    told = zlib.compress(behind, 1)
    fields = (_DOWN, VERSION, broadcast.run, broadcast.version, broadcast.step)
    head = _BROADCAST.pack(*fields, broadcast.merged.size, len(told), 0)[:-4]
    check = zlib.crc32(broadcast.params, zlib.crc32(told, zlib.crc32(head)))
    return b"".join([head, struct.pack("<I", check), told, broadcast.params])


def read_broadcast(data: bytes) -> Broadcast:
    """The broadcast in `data`, or `Refused`. Many clients of one process are told the same short one."""
    return _remembered(data) if len(data) <= SHORT else _read(data)


def _read(data: bytes) -> Broadcast:
    size = _BROADCAST.size
    if len(data) < size:
        raise Refused(Reason.MALFORMED, f"{len(data)} bytes, a header has {size}")
    mark, wire, run, version, step, clients, length, check = _BROADCAST.unpack_from(data)
    if mark != _DOWN or wire != VERSION:
        raise Refused(Reason.MALFORMED, "is not a broadcast of this version")
    rest = memoryview(data)[size:]
    if check != zlib.crc32(rest, zlib.crc32(memoryview(data)[: size - 4])):
        raise Refused(Reason.CHECKSUM)
    try:
        behind = np.frombuffer(zlib.decompressobj().decompress(rest[:length], 8 * clients), "<i8")
    except zlib.error as error:
        raise Refused(Reason.MALFORMED, str(error)) from None
    if behind.size != clients:
        raise Refused(Reason.MALFORMED, f"{behind.size} clients where {clients} are announced")
    return Broadcast(run, version, step, step - behind, bytes(rest[length:]))


_remembered = functools.lru_cache(maxsize=16)(_read)


def pack_missing(step: int, missing: np.ndarray) -> bytes:
    """A hub's sign of life in lockstep: the step that is due, and whose uploads it misses."""
    return _STEP.pack(step) + np.packbits(missing).tobytes()


def missed(data: bytes, client: int) -> int:
    """The step at which the hub misses this client's upload; 0 if it does not.

    >>> said = pack_missing(7, np.arange(10) == 9)
    >>> [missed(said, client) for client in (0, 8, 9, 99)]
    [0, 0, 7, 0]
    """
    place, bit = divmod(client, 8)
    if len(data) <= _STEP.size + place or not data[_STEP.size + place] & (128 >> bit):
        return 0
    return int(_STEP.unpack_from(data)[0])
