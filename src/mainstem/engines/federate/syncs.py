"""After which steps a sync follows, looked up many at once: asking an algorithm for one costs as much."""

import numpy as np

from mainstem.base import Sync

AHEAD = 1024  # steps that are looked up at once


class Syncs:
    """The syncs of an algorithm."""

    def __init__(self, sync: Sync):
        self._sync = sync
        self._first = -AHEAD  # the step from which on it has looked
        self._found = np.zeros(AHEAD, bool)

    def after(self, step: int) -> bool:
        """Whether a sync follows this step."""
        if not self._first <= step < self._first + AHEAD:
            self._first = step
            self._found = self._sync.after(np.arange(step, step + AHEAD))
        return bool(self._found[step - self._first])

    def next(self, step: int, last: int) -> int:
        """The first step after this one, and not after the `last`, that a sync follows; 0 if there is none."""
        while step < last:
            if self.after(step + 1):
                return step + 1
            place = step + 1 - self._first
            ahead = self._found[place : place + last - step]
            found = int(ahead.argmax())
            if ahead[found]:
                return step + 1 + found
            step += ahead.size
        return 0
