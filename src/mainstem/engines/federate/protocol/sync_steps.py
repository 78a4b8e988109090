"""The steps after which a sync follows, looked up in blocks: one call costs as much for one step as for many."""

import numpy as np

from mainstem.base import Sync

BLOCK = 1024  # steps that are looked up at once


class SyncSteps:
    """The sync steps of an algorithm."""

    def __init__(self, sync: Sync):
        self._sync = sync
        self._first = -BLOCK  # the first step of the block that was looked up
        self._found = np.zeros(BLOCK, bool)

    def after(self, step: int) -> bool:
        """Whether a sync follows this step."""
        if not self._first <= step < self._first + BLOCK:
            self._first = step
            self._found = self._sync.after(np.arange(step, step + BLOCK))
        return bool(self._found[step - self._first])

    def next(self, step: int, last: int) -> int:
        """The next sync step after `step` and up to `last`; 0 if there is none."""
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
