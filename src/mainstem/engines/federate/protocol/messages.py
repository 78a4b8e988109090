"""Binary messages (uploads and broadcasts), and the reasons for which one is refused.

An upload is a fixed header and the codec's packed bytes. A broadcast is a fixed header, the newest merged and
received step of each client, and the model. Both are little-endian, and their header ends with a checksum. Nothing
is unpickled. Readers check the checksum and the lengths before they return a message.

Both carry the run's epoch: when its present history began, in microseconds since 1970. The hub draws a later one
when it has lost merges that clients have seen, such as after a restored backup. An upload also carries the session
of its client: when the process joined, in the same unit. A broadcast carries the revision of the run document.
"""

import enum
import struct
import zlib
from typing import NamedTuple

import numpy as np

from mainstem.engines.federate.protocol.versions import PROTOCOL
from mainstem.errors import MainstemError

_UPLOAD = struct.Struct("<4sB8sQQ4sIQQddBI")  # the checksum last, of everything but itself
_BROADCAST = struct.Struct("<4sB8sQQQIIII")
_UP, _DOWN = b"msup", b"msdn"
LAST_STEP = 2**31 - 1  # algorithms count steps in 32 bits
SMALL = 2**16  # bytes up to which a message may be cached, or published without an acknowledgement
HEADROOM = 1024  # bytes of the server's largest message that are left for its own headers
MAX_LOSS = 1e100  # that a client may state: sums over clients and steps stay finite
UPLOAD_HEADER = _UPLOAD.size  # bytes


class Reason(enum.StrEnum):
    """Why an upload is refused."""

    MALFORMED = "malformed"
    PROTOCOL = "another protocol"
    CHECKSUM = "checksum"
    OVERSIZED = "oversized"
    RUN = "wrong run"
    EPOCH = "wrong epoch"
    PENDING = "too many pending"
    CHUNK = "chunk out of order"
    CLIENT = "wrong client"
    SESSION = "another session"
    CODEC = "wrong codec"
    SHAPE = "wrong shape"
    ROUND = "wrong round"
    VERSION = "unknown model"
    REPLAYED = "replayed"
    STALE = "stale"
    NOT_FINITE = "not finite"
    WEIGHT = "wrong weight"
    QUARANTINED = "quarantined"


class Refused(MainstemError):
    """A message that is not accepted. It changes no state."""

    def __init__(self, reason: Reason, detail: str = ""):
        super().__init__(f"{reason}: {detail}" if detail else str(reason))
        self.reason = reason


class Upload(NamedTuple):
    """A client's message at a sync. It has no body if the client was not sampled or has learnt nothing."""

    run: bytes  # digest of the run document, 8 bytes
    codec: bytes  # digest of codec, size and dtype, 4 bytes
    client: int  # `client_id` of its name
    step: int  # the client's t: samples it has learnt from
    version: int  # of the model that the client holds
    loss: float  # sum of the client's losses so far
    weight: float
    body: bytes | None
    epoch: int = 0  # of the run
    session: int = 0  # of the client


class Broadcast(NamedTuple):
    """The hub's message to all clients: the merged model."""

    run: bytes  # digest of the run document, 8 bytes
    version: int  # number of merges so far
    step: int  # t of the last merge
    merged: np.ndarray  # newest step of each client whose message is in the model
    received: (
        np.ndarray
    )  # newest step of each client whose upload the hub has, with a message or not
    params: bytes
    epoch: int = 0  # of the run
    revision: int = 0  # of the run document

    @property
    def age(self) -> tuple[int, int]:
        """Later broadcasts have a larger one."""
        return self.epoch, self.version


def client_id(name: str) -> int:
    """What stands for a client's name in an upload: the roster may change while it is on its way."""
    return zlib.crc32(name.encode())


def pack_upload(upload: Upload) -> bytes:
    """Encodes an upload."""
    head = _UPLOAD.pack(
        _UP,
        PROTOCOL,
        upload.run,
        upload.epoch,
        upload.session,
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
    """Decodes an upload. Raises `Refused` if it is malformed, of another version or damaged."""
    if len(data) < UPLOAD_HEADER:
        raise Refused(Reason.MALFORMED, f"{len(data)} bytes, a header has {UPLOAD_HEADER}")
    fields = _UPLOAD.unpack_from(data)
    (
        mark,
        protocol,
        run,
        epoch,
        session,
        codec,
        client,
        step,
        held,
        loss,
        weight,
        has_body,
        check,
    ) = fields
    if mark != _UP or has_body not in (0, 1):
        raise Refused(Reason.MALFORMED, "is not an upload")
    if protocol != PROTOCOL:
        raise Refused(Reason.PROTOCOL, f"{protocol}, the hub has {PROTOCOL}")
    body = memoryview(data)[UPLOAD_HEADER:]
    if check != zlib.crc32(body, zlib.crc32(memoryview(data)[: UPLOAD_HEADER - 4])):
        raise Refused(Reason.CHECKSUM)
    if not has_body and len(body):
        raise Refused(Reason.MALFORMED, "a body where none is announced")
    sent = bytes(body) if has_body else None
    return Upload(run, codec, client, step, held, loss, weight, sent, epoch, session)


def held_version(data: bytes) -> int:
    """The model version that the sender of an encoded upload held."""
    return int(_UPLOAD.unpack_from(data)[8])


def session_of(data: bytes) -> int:
    """The session that an encoded upload claims to be of; 0 if it is none."""
    return int(_UPLOAD.unpack_from(data)[4]) if len(data) >= UPLOAD_HEADER else 0


def in_epoch(data: bytes, epoch: int, version: int) -> bytes:
    """An encoded upload for another epoch, in which `version` is the newest model."""
    upload = read_upload(data)
    return pack_upload(upload._replace(epoch=epoch, version=min(upload.version, version)))


def in_session(data: bytes, client: str, session: int) -> bytes:
    """An encoded upload for another session of its client, which may have another name now."""
    upload = read_upload(data)
    return pack_upload(upload._replace(client=client_id(client), session=session))


def pack_broadcast(broadcast: Broadcast) -> bytes:
    """Encodes a broadcast. The clients' steps are mostly equal, so they are stored as lags and compressed."""
    steps = np.concatenate([broadcast.merged, broadcast.received])
    lags = zlib.compress((broadcast.step - steps).astype("<i8").tobytes(), 1)
    fields = (_DOWN, PROTOCOL, broadcast.run, *broadcast.age, broadcast.step)
    sizes = broadcast.merged.size, len(lags)
    head = _BROADCAST.pack(*fields, broadcast.revision, *sizes, 0)[:-4]
    check = zlib.crc32(broadcast.params, zlib.crc32(lags, zlib.crc32(head)))
    return b"".join([head, struct.pack("<I", check), lags, broadcast.params])


def most_broadcast_bytes(clients: int, params: int) -> int:
    """An upper bound on the size of a broadcast with `params` bytes of a model."""
    return _BROADCAST.size + 17 * clients + 64 + params  # zlib adds less


def read_broadcast(data: bytes, wanted: int) -> Broadcast:
    """Decodes a broadcast to this many clients, or raises `Refused`."""
    size = _BROADCAST.size
    if len(data) < size:
        raise Refused(Reason.MALFORMED, f"{len(data)} bytes, a header has {size}")
    fields = _BROADCAST.unpack_from(data)
    mark, wire, run, epoch, version, step, revision, clients, length, check = fields
    if mark != _DOWN or wire != PROTOCOL:
        raise Refused(Reason.MALFORMED, "is not a broadcast of this version")
    rest = memoryview(data)[size:]
    if check != zlib.crc32(rest, zlib.crc32(memoryview(data)[: size - 4])):
        raise Refused(Reason.CHECKSUM)
    if clients != wanted:  # before anything of that size is unpacked
        raise Refused(Reason.SHAPE, f"steps of {clients} clients, the run has {wanted}")
    if version > LAST_STEP:
        raise Refused(Reason.VERSION, str(version))
    if step > LAST_STEP:
        raise Refused(Reason.ROUND, f"step {step}")
    try:
        lags = np.frombuffer(zlib.decompressobj().decompress(rest[:length], 16 * clients), "<i8")
    except (zlib.error, ValueError) as error:
        raise Refused(Reason.MALFORMED, str(error)) from None
    if lags.size != 2 * clients:
        raise Refused(Reason.MALFORMED, f"{lags.size} steps where {2 * clients} are announced")
    first, last = step - int(lags.max()), step - int(lags.min())
    if first < 0 or last > LAST_STEP:
        raise Refused(Reason.ROUND, f"steps from {first} to {last}")
    merged, received = step - lags[:clients], step - lags[clients:]
    return Broadcast(run, version, step, merged, received, bytes(rest[length:]), epoch, revision)


def revision_of(data: bytes) -> int:
    """The revision of the document that an encoded broadcast is of; 0 if it is not a broadcast."""
    return int(_BROADCAST.unpack_from(data)[6]) if len(data) >= _BROADCAST.size else 0
