"""Heartbeats: the hub and every client say that they are there, and where in the run they are.

A position that is ahead of the hub's own shows the hub that it was set back. A version ahead of a client's own
shows the client that it has missed a broadcast. Heartbeats have no checksum: a single one changes no model.
A client's heartbeats are also its greeting: they tell its session and its versions.
"""

import json
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from mainstem.engines.federate.protocol.comparisons import AloneLosses, CandidateLosses, checked
from mainstem.engines.federate.protocol.messages import LAST_STEP

GOODBYE = b"left"  # the last heartbeat of a client that leaves
MOST_BYTES = 1024  # of a client's heartbeat
MAX_EPOCH = 2**62  # of sessions, too
_HUB = struct.Struct("<QQQI")


class Position(NamedTuple):
    """Where somebody is in a run."""

    epoch: int  # of the newest broadcast
    version: int  # of the newest broadcast
    step: int  # lockstep: of the next upload; of the hub: the one that is due


class HubHeartbeat(NamedTuple):
    """What the hub says to one client."""

    position: Position
    revision: int  # of the run document
    missing: (
        bool  # whether this client's upload is due and has not come; by the roster of that revision
    )


def pack_hub(position: Position, revision: int, missing: np.ndarray) -> bytes:
    """Encodes a heartbeat of the hub; `missing` are the clients whose upload is due and has not come."""
    return _HUB.pack(*position, revision) + np.packbits(missing).tobytes()


def read_hub(data: bytes, client: int) -> HubHeartbeat | None:
    """What the hub says to the client of this index; None if it is not a heartbeat.

    >>> heartbeat = pack_hub(Position(1, 6, 7), 0, np.arange(10) == 9)
    >>> [read_hub(heartbeat, client).missing for client in (0, 8, 9, 99)]
    [False, False, True, False]
    """
    if len(data) < _HUB.size:
        return None
    place, bit = divmod(client, 8)
    place += _HUB.size
    missing = place < len(data) and bool(data[place] & (128 >> bit))
    *position, revision = _HUB.unpack_from(data)
    return HubHeartbeat(Position(*position), revision, missing)


class ClientHeartbeat(NamedTuple):
    """What a client says."""

    position: Position
    session: int = 0  # when it joined, in microseconds since 1970
    compared: CandidateLosses | None = None  # if there is a candidate
    had: int = 0  # the merge that it had before its epoch, if that began at an earlier one
    alone: AloneLosses | None = None  # if it learns a model alone, too


def pack_client(heartbeat: ClientHeartbeat, versions: Mapping[str, Any]) -> bytes:
    """Encodes a heartbeat of a client."""
    position, session, compared, had, alone = heartbeat
    body: dict[str, Any] = {"versions": versions, **position._asdict(), "session": session}
    if compared is not None:
        body["compared"] = compared._asdict()
    if had:
        body["had"] = had
    if alone is not None:
        body["alone"] = alone._asdict()
    return json.dumps(body).encode()


def versions_in(data: bytes) -> dict[str, Any]:
    """The versions that a client tells, in the same way in all of them; empty if it does not."""
    try:
        found = json.loads(data)["versions"] if len(data) <= MOST_BYTES else {}
    except (ValueError, RecursionError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def read_client(data: bytes) -> ClientHeartbeat:
    """Decodes a heartbeat of a client. Raises ValueError or TypeError for one that no client would send."""
    if len(data) > MOST_BYTES:
        raise ValueError("too long")
    try:
        found = json.loads(data)
    except RecursionError as error:
        raise ValueError("too deep") from error
    if not isinstance(found, dict):
        raise ValueError("not a heartbeat")
    compared, session = found.pop("compared", None), found.pop("session", 0)
    had, alone = found.pop("had", 0), found.pop("alone", None)
    found.pop("versions", None)
    known = {name: found[name] for name in Position._fields if name in found}
    position = Position(**known)  # what else there is, is of a later version
    for value, most in zip(position, (MAX_EPOCH, LAST_STEP, LAST_STEP), strict=True):
        if type(value) is not int or not 0 <= value <= most:
            raise ValueError("not a position")
    if type(session) is not int or not 0 <= session <= MAX_EPOCH:
        raise ValueError("not a session")
    if type(had) is not int or not 0 <= had <= LAST_STEP:
        raise ValueError("not a merge")
    if compared is not None:
        compared = checked(CandidateLosses(**compared))
    if alone is not None:
        alone = checked(AloneLosses(**alone))
    return ClientHeartbeat(position, session, compared, had, alone)
