"""How often something has happened lately."""

import time
from collections import deque

WINDOW = 30.0  # seconds


class RecentRate:
    """Counts events, and forgets them after a while."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._seconds: deque[tuple[int, int]] = deque()  # a second, and the events in it

    def add(self) -> None:
        """Counts an event that happens now."""
        second = int(time.monotonic())
        if self._seconds and self._seconds[-1][0] == second:
            second, count = self._seconds.pop()
            self._seconds.append((second, count + 1))
        else:
            self._seconds.append((second, 1))

    def per_second(self) -> float:
        """Events per second, of the last half minute."""
        now = time.monotonic()
        while self._seconds and self._seconds[0][0] < now - WINDOW:
            self._seconds.popleft()
        past = min(WINDOW, max(now - self._started, 1.0))
        return sum(count for _, count in self._seconds) / past
