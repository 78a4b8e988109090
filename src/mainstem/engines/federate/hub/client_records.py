"""What the hub knows of each client: its newest steps, losses, bytes, refusals and session."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from mainstem.engines.federate.hub.loss_watch import LossWatch
from mainstem.engines.federate.protocol.messages import Reason, Upload

HARMLESS = {
    Reason.REPLAYED,
    Reason.STALE,
    Reason.EPOCH,
    Reason.VERSION,
    Reason.PENDING,
    Reason.CHUNK,
    Reason.SESSION,
}  # an honest client that was killed or disconnected, or whose hub was set back, can send these


class ClientRecords:
    """Arrays with a number for each client. One that was refused `limit` times is quarantined."""

    def __init__(self, clients: int, limit: int):
        self.merged = np.zeros(clients, np.int64)  # newest step with a merged message
        self.received = np.zeros(clients, np.int64)  # newest step, with a message or not
        self.losses = np.zeros(clients)  # sum of its losses up to that step
        self.reported = np.zeros(clients)  # the sum in its last upload: less if it began anew
        self.bytes_up = np.zeros(clients, np.int64)
        self.staleness = np.zeros(clients, np.int64)  # merges that its last upload was behind
        self.norm = np.zeros(clients)  # of its last message since this hub began
        self.strikes = np.zeros(clients, np.int64)  # refusals that count against it
        self.sessions = np.zeros(clients, np.int64)  # its process that is heard
        self.refused: list[Counter[str]] = [Counter() for _ in range(clients)]
        self.watch = LossWatch(clients)
        self.quarantined: frozenset[int] = frozenset()
        self._limit = limit

    def count(self, k: int, upload: Upload, version: int, nbytes: int | None) -> None:
        """Counts an upload of client k in merge `version`; `nbytes`: of its message, None if it has none."""
        loss = upload.loss - (self.reported[k] if upload.loss >= self.reported[k] else 0.0)
        self.watch.add(k, loss, upload.step - int(self.received[k]))
        self.received[k] = max(self.received[k], upload.step)
        if nbytes is not None:
            self.merged[k] = max(self.merged[k], upload.step)
        self.losses[k] += loss
        self.reported[k] = upload.loss
        self.bytes_up[k] += nbytes or 0
        self.staleness[k] = version - upload.version

    def refuse(self, k: int, reason: Reason) -> None:
        """Counts a refusal of client k."""
        self.refused[k][reason] += 1
        if reason not in HARMLESS:
            self.strikes[k] += 1
            self.limit_strikes(self._limit)

    def forgive(self, k: int) -> None:
        """Forgets the refusals that count against client k."""
        self.strikes[k] = 0
        self.limit_strikes(self._limit)

    def limit_strikes(self, limit: int) -> None:
        """Quarantines the clients with so many strikes, and no others."""
        self._limit = limit
        self.quarantined = frozenset(np.flatnonzero(self.strikes >= limit).tolist())

    def take(self, other: "ClientRecords", rows: Sequence[tuple[int, int]]) -> None:
        """Takes over what other records have of clients: `rows` are pairs of an index here and one there."""
        theirs = other.arrays()
        for name, array in self.arrays().items():
            for here, there in rows:
                array[here] = theirs[name][there]
        for here, there in rows:
            self.refused[here] = other.refused[there]
        self.limit_strikes(self._limit)

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of a stored state."""
        return {name: getattr(self, name) for name in PER_CLIENT} | self.watch.arrays()

    def restore(
        self, arrays: Mapping[str, np.ndarray], refused: Sequence[Mapping[str, int]]
    ) -> None:
        """Takes over the arrays of a stored state, and its counts of refusals."""
        for name in PER_CLIENT:
            setattr(self, name, arrays[name].copy())
        self.watch.restore(arrays)
        self.refused = [Counter(each) for each in refused]
        self.limit_strikes(self._limit)


PER_CLIENT = (
    "merged",
    "received",
    "losses",
    "reported",
    "bytes_up",
    "staleness",
    "strikes",
    "sessions",
)  # names of the arrays that a stored state has
