"""Presence: which clients are there, by what they send."""

import math
import time
from collections.abc import Mapping

LOST = 15.0  # seconds without a message
PRESENT, AWAY = "present", "away"
HERE = (PRESENT, "late")  # states of a client that is there


class Presence:
    """When each client was last heard."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._left: set[str] = set()  # clients whose last message was a goodbye

    def uploaded(self, client: str) -> None:
        """An upload came. It may have been on its way when its client left."""
        if client not in self._left:
            self._last[client] = time.monotonic()

    def came(self, client: str) -> bool:
        """A heartbeat came. Returns whether the client was not there before."""
        new = not self.is_present(client)
        self._left.discard(client)
        self._last[client] = time.monotonic()
        return new

    def left(self, client: str) -> bool:
        """A goodbye came. Returns whether the client was there before."""
        self._left.add(client)
        return self._last.pop(client, None) is not None

    def is_present(self, client: str) -> bool:
        """Whether it was heard lately."""
        return time.monotonic() - self._last.get(client, -math.inf) <= LOST

    def absent(self, indices: Mapping[str, int]) -> set[int]:
        """The indices of the clients that are not present."""
        oldest = time.monotonic() - LOST
        return {k for name, k in indices.items() if self._last.get(name, -math.inf) < oldest}

    def state(self, client: str) -> str:
        """Present, lost, or away: it has left, or was never there."""
        if client not in self._last:
            return AWAY
        return PRESENT if time.monotonic() - self._last[client] <= LOST else "lost"
