"""Tracks a federated run: a point for each merge, once a second at most, from its status.

Trackers work in a thread of their own: a slow disk or server delays no merge. Points that they cannot follow are
left out, and the log says so.
"""

import queue
import threading
from collections.abc import Mapping
from typing import Any

from mainstem.engines.federate import event_log
from mainstem.engines.federate.hub.presence import HERE
from mainstem.engines.federate.protocol.run_document import RunDocument
from mainstem.tracking import trackers
from mainstem.tracking.opening import Asked

WAITING = 60  # points that may wait for a tracker
PAUSE = 60.0  # seconds after which a tracker that has failed is tried again
PATIENCE = 10.0  # seconds for which the end of a run waits for trackers
FEW = 32  # sites, up to which each has a curve of its loss


class TrackedStatus:
    """Gives the statuses of a run to trackers. `version`: from which the hub goes on; it was tracked."""

    def __init__(self, asked: Asked, document: RunDocument, version: int = 0):
        self._run = document.rules.run
        self._trackers = trackers(asked, PAUSE)
        self._trackers.begin(self._run, document.content)
        self._queue: queue.Queue[tuple[int, dict[str, float]] | None] = queue.Queue(WAITING)
        self._version = version
        self._left_out = 0
        self._last: dict[str, float] = {}
        self._thread = threading.Thread(target=self._work, name="mainstem tracking", daemon=True)
        self._thread.start()

    def take(self, status: Mapping[str, Any]) -> None:
        """Takes a status, if there was a merge since the last one."""
        if status["version"] == self._version:
            return
        self._version, self._last = status["version"], values(status)
        try:
            self._queue.put_nowait((self._version, self._last))
        except queue.Full:
            self._left_out += 1
            if self._left_out == 1:
                text = "trackers are too slow: points are left out"
                event_log.warning("tracking_behind", text, run=self._run)

    def close(self, status: Mapping[str, Any]) -> None:
        """Ends the tracking with the last status, after what waits."""
        self.take(status)
        try:
            self._queue.put(None, timeout=PATIENCE)
            self._thread.join(PATIENCE)
        except queue.Full:
            pass
        if self._thread.is_alive():
            event_log.warning("tracking_behind", "trackers did not end in time", run=self._run)

    def _work(self) -> None:
        while (point := self._queue.get()) is not None:
            self._trackers.log(*point)
        self._trackers.end(self._last)


def values(status: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a status that are tracked."""
    clients = status["clients"]
    recent = {name: each["recent_loss"] for name, each in clients.items() if each["uploads"]}
    found = {
        "bytes_up": float(sum(each["bytes_up"] for each in clients.values())),
        "bytes_down": float(status["bytes_down"]),
        "refused": float(sum(sum(each["refused"].values()) for each in clients.values())),
        "sites_here": float(sum(each["state"] in HERE for each in clients.values())),
        "staleness": float(max((each["staleness"] for each in clients.values()), default=0)),
    }
    if recent:
        found["recent_loss"] = sum(recent.values()) / len(recent)
    if len(clients) <= FEW:
        found |= {f"recent_loss/{name}": loss for name, loss in recent.items()}
    return found
