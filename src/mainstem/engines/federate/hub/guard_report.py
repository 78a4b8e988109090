"""Reports what the guard of a run has done: for the log of merges, and for the alarms."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

OFTEN = 8  # messages of a client that are left out before it is reported: in a first merge one may be by chance
BACK = 64  # messages of a client in a row, none left out, after which it is no longer reported


class GuardReport:
    """Follows how many messages of each client were shortened and left out."""

    def __init__(self, counts: np.ndarray):
        self._counts = counts
        # Of each client that was left out lately: how often, and its messages since then that were not.
        self._times: Counter[str] = Counter()
        self._since: dict[str, int] = {}

    @property
    def left_out(self) -> set[str]:
        """The clients that are left out at present."""
        return {name for name, times in self._times.items() if times >= OFTEN}

    def update(
        self, clients: Sequence[str], counts: np.ndarray, entered: Sequence[tuple[str, int, int]]
    ) -> dict[str, list[str]]:
        """The clients that a merge has stopped: `counts` has a row for each of `clients`.

        `entered`: the uploads of the merge; their clients' names come first.
        """
        if counts.shape != self._counts.shape:  # the roster has changed
            self._counts = counts
        if not self._times and (counts == self._counts).all():
            return {"clipped": [], "held": []}
        clipped, held = self._risen(clients, counts)
        self._counts = counts
        self._times.update(held)
        self._since |= dict.fromkeys(held, 0)
        for name in {name for name, *_ in entered if name in self._times} - set(held):
            self._since[name] += 1
            if self._since[name] >= BACK:
                del self._times[name], self._since[name]
        return {"clipped": clipped, "held": held}

    def _risen(self, clients: Sequence[str], counts: np.ndarray) -> tuple[list[str], list[str]]:
        """The clients of which more messages were shortened, and those of which more were left out."""
        found: tuple[list[str], list[str]] = [], []
        for k, which in np.argwhere(counts > self._counts):
            found[which].append(clients[k])
        return found
