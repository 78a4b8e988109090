"""Where the clients are, by their heartbeats: a client that is ahead of the hub shows that the hub was set back.

That happens when the NATS server and the hub's folder are restored from a backup, or lost. Each client is believed
once a minute, and in lockstep no more than one sync ahead of what others say too: a false claim costs a new epoch,
in which nothing is lost.
"""

import time
from collections.abc import Callable

from mainstem.engines.federate import event_log
from mainstem.engines.federate.protocol.heartbeats import Position

AGAIN = 60.0  # seconds after which a client is believed again
YEAR = 365 * 24 * 3600 * 10**6  # microseconds
NOTHING = Position(0, 0, 0)


def now() -> int:
    """The present time, as an epoch."""
    return time.time_ns() // 1000


class Positions:
    """The newest position of each client; `quorum()` is the fewest clients in a merge of the run."""

    def __init__(self, quorum: Callable[[], int], next_sync: Callable[[int], int]):
        self._quorum = quorum
        self._next_sync = next_sync
        self._newest: dict[str, Position] = {}
        self._believed: dict[str, float] = {}  # when each client was

    def note(self, client: str, position: Position) -> None:
        """Takes a client's position."""
        self._newest[client] = position

    def ahead(self, hub: Position) -> Position | None:
        """The position at which the hub was before it was set back; None if it was not, as far as is known."""
        latest = max(hub.epoch, now()) + YEAR
        known = {name: it for name, it in self._newest.items() if it.epoch <= latest}
        for name in self._newest.keys() - known.keys():
            del self._newest[name]
            text = f"client {name} states a time in the far future: is this clock right?"
            event_log.warning("clock_differs", text)
        step = self._step([it.step for it in known.values()])
        found = [
            name
            for name, it in known.items()
            if (it[:2] > hub[:2] or 0 < hub.step < it.step <= step) and self._is_believed(name)
        ]
        if not found:
            return None
        for name in found:
            self._believed[name] = time.monotonic()
            del self._newest[name]
        epoch, version = max(known[name][:2] for name in found)
        return Position(epoch, version, max(step, hub.step))

    def _is_believed(self, name: str) -> bool:
        return time.monotonic() - self._believed.get(name, -AGAIN) >= AGAIN

    def _step(self, steps: list[int]) -> int:
        """The latest step that is due for a client, at most one sync after what enough clients state."""
        if len(steps) < self._quorum():
            return 0
        agreed = sorted(steps)[-self._quorum()]
        return max((step for step in steps if step <= self._next_sync(agreed)), default=0)
