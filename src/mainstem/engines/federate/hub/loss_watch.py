"""The watch on the losses that clients report: whether they are far larger than at the beginning.

A lie of ordinary size passes the guard, and what it does to the model shows in the losses of the others. Each
client's loss is compared with its own at the beginning, and the median over the clients counts: one client alone
can neither raise an alarm nor prevent one.
"""

from collections.abc import Mapping

import numpy as np

WINDOW = 32  # uploads of a client, at the beginning and lately


class LossWatch:
    """The mean loss of each client, at the beginning and lately."""

    def __init__(self, clients: int):
        self.early = np.zeros(clients)  # over its first uploads
        self.recent = np.zeros(clients)  # over its last ones, which count less the older they are
        self.uploads = np.zeros(clients, np.int64)

    def add(self, k: int, loss: float, samples: int) -> None:
        """Takes the loss of client k on so many new samples."""
        if samples <= 0:
            return
        mean, count = loss / samples, self.uploads[k] + 1
        if count <= WINDOW:
            self.early[k] += (mean - self.early[k]) / count
            self.recent[k] = self.early[k]
        else:
            self.recent[k] += (mean - self.recent[k]) / WINDOW
        self.uploads[k] = count

    @property
    def level(self) -> float:
        """How many times larger the losses are than at the beginning; 0 if too little is known."""
        known = (self.uploads >= WINDOW) & (self.early > 0)
        if 2 * np.count_nonzero(known) < known.size:
            return 0.0
        return float(np.median(self.recent[known] / self.early[known]))

    def restart(self) -> None:
        """Counts as recent only what comes from now on."""
        self.recent = self.early.copy()

    def arrays(self) -> dict[str, np.ndarray]:
        """What a stored state needs."""
        return {"early": self.early, "recent": self.recent, "uploads": self.uploads}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """The inverse of `arrays`."""
        for name in self.arrays():
            setattr(self, name, arrays[name].copy())
