"""Presence: which clients are there, by what they send."""

import math
import time
from collections.abc import Mapping

LOST = 15.0  # seconds without a message
SESSIONS = 4  # of a client that are remembered
PRESENT, AWAY = "present", "away"


class Presence:
    """When each client was last heard."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._left: set[str] = set()  # clients whose last message was a goodbye
        self._sessions: dict[str, list[str]] = {}  # the last few of each client, the newest last

    def uploaded(self, client: str) -> None:
        """An upload came. It may have been on its way when its client left."""
        if client not in self._left:
            self._last[client] = time.monotonic()

    def came(self, client: str) -> None:
        """A heartbeat came."""
        self._left.discard(client)
        self._last[client] = time.monotonic()

    def left(self, client: str) -> None:
        """A goodbye came."""
        self._left.add(client)
        self._last.pop(client, None)

    def is_twice(self, client: str, session: str) -> bool:
        """Whether a session sends again that another one of the same client has followed."""
        known = self._sessions.setdefault(client, [])
        if known and known[-1] == session:
            return False
        again = session in known
        self._sessions[client] = [*(each for each in known if each != session), session][-SESSIONS:]
        return again

    def absent(self, indices: Mapping[str, int]) -> set[int]:
        """The indices of the clients that are not present."""
        oldest = time.monotonic() - LOST
        return {k for name, k in indices.items() if self._last.get(name, -math.inf) < oldest}

    def state(self, client: str) -> str:
        """Present, lost, or away: it has left, or was never there."""
        if client not in self._last:
            return AWAY
        return PRESENT if time.monotonic() - self._last[client] <= LOST else "lost"
