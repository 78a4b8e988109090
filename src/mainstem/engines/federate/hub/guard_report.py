"""Reports what the guard of a run has done: for the log of merges, and as warnings."""

from collections.abc import Sequence

import numpy as np

from mainstem.engines.federate.transport.tasks import log

BACK = 64  # messages of a client in a row, none left out, after which it is no longer reported


class GuardReport:
    """Follows how many messages of each client were shortened and left out."""

    def __init__(self, run: str, clients: Sequence[str], counts: np.ndarray):
        self._run = run
        self._clients = clients
        self._counts = counts
        # Clients that were left out, and how many of their messages were not since.
        self._held: dict[str, int] = {}

    def update(
        self, counts: np.ndarray, entered: Sequence[tuple[str, int, int]]
    ) -> dict[str, list[str]]:
        """The clients that a merge has stopped; warns of those that are left out, and when they no longer are.

        `entered`: the uploads of the merge; their clients' names come first.
        """
        if not self._held and (counts == self._counts).all():
            return {"clipped": [], "held": []}
        clipped, held = self._risen(counts)
        self._counts = counts
        for name in held:
            if name not in self._held:
                what = "%s: client %s is left out: its changes are far larger than the others'"
                log.warning(what, self._run, name)
            self._held[name] = 0
        for name in {name for name, *_ in entered if name in self._held} - set(held):
            self._held[name] += 1
            if self._held[name] >= BACK:
                del self._held[name]
                log.warning("%s: client %s is no longer left out", self._run, name)
        return {"clipped": clipped, "held": held}

    def _risen(self, counts: np.ndarray) -> tuple[list[str], list[str]]:
        """The clients of which more messages were shortened, and those of which more were left out."""
        found: tuple[list[str], list[str]] = [], []
        for k, which in np.argwhere(counts > self._counts):
            found[which].append(self._clients[k])
        return found
