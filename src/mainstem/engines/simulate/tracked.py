"""Tracks a run while it is simulated: the means over blocks of steps, so that it has a thousand points."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mainstem.engines.simulate import hosts
from mainstem.engines.simulate.thinning import Thinning
from mainstem.run import Run
from mainstem.run.run import CURVES
from mainstem.run.trace import per_client
from mainstem.tracking import trackers
from mainstem.tracking.opening import Asked

POINTS = 1000
LAST = ("accuracy", "mse", "uplink_bits", "downlink_bits")
NAMES = {"correct": "accuracy", "squared_error": "mse"}  # what the mean of a column is


def last_values(run: Run) -> dict[str, float]:
    """What a run has come to: its mean loss, and the last values of its curves."""
    known = {name: run.curve(name) for name in LAST if CURVES[name] in run.trace}
    found = {name: np.atleast_2d(curve)[:, -1] for name, curve in known.items()}
    return {"loss": float(np.mean(run.loss))} | {name: float(v.mean()) for name, v in found.items()}


class Tracked:
    """Gives trackers the rows of a run. Only the first host of several does."""

    def __init__(self, asked: Asked, steps: int, clients: int):
        self._trackers = trackers(asked if hosts.first() else None)
        self._block = max(1, steps // POINTS)
        self._blocks = Thinning(self._block, clients)

    @property
    def unfinished(self) -> dict[str, np.ndarray]:
        """By column: the sum over the steps of the unfinished block, which a resumed run needs."""
        return self._blocks.kept

    def restore(self, unfinished: Mapping[str, np.ndarray]) -> None:
        """The run is resumed in the middle of this block."""
        if self._trackers:  # else the steps that follow are not added to it
            self._blocks.kept = dict(unfinished)

    def begin(
        self, name: Callable[[], str], about: Callable[[], Mapping[str, Any]], after: int
    ) -> None:
        """The run begins, or is resumed `after` a step; `name()` is its name, `about()` its experiment."""
        if self._trackers:
            tables = dict(about())
            (algorithm,) = tables.pop("algorithm")
            self._trackers.begin(name(), {"algorithm": algorithm, **tables}, after)

    def add(self, rows: Mapping[str, Any], first: int) -> None:
        """Adds the rows of the steps from `first` on."""
        if not self._trackers:
            return
        known = {name: np.asarray(row) for name, row in rows.items() if per_client(name) is None}
        begun = (first - 1) % self._block
        if begun and not self._blocks.kept:  # nobody has tracked the steps before these
            known = {name: row[..., self._block - begun :] for name, row in known.items()}
            first += self._block - begun
        if not all(row.shape[-1] for row in known.values()):
            return
        blocks = self._blocks(known, first)
        done = (first - 1) // self._block  # blocks before these
        sums = {name: np.atleast_2d(row) for name, row in blocks.items()}
        there = np.maximum(sums["present"], 1e-12) if "present" in sums else self._block
        means = {
            NAMES.get(name, name): (row / (there if name in NAMES else self._block)).mean(axis=0)
            for name, row in sums.items()
        }
        for n in range(min((len(mean) for mean in means.values()), default=0)):
            values = {name: float(mean[n]) for name, mean in means.items()}
            self._trackers.log((done + n + 1) * self._block, values)

    def end(self, values: Callable[[], Mapping[str, float]] | None = None) -> None:
        """The run has ended; if it has finished, `values()` are its last ones.

        They are computed for trackers alone: without any, the trace of a run stays on its device.
        """
        if self._trackers:
            self._trackers.end(None if values is None else values())
