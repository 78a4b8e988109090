"""Measures of regression, from the predictions and targets of a run: pinball loss, quantiles of the error."""

import heapq
import math

import numpy as np

from mainstem import check
from mainstem.measure.of_run import Recorded
from mainstem.measure.predicted import for_seeds


def pinball(run: Recorded, level: float = 0.5) -> np.ndarray:
    """The mean pinball loss of all predictions so far, of all clients: entry t has the first t + 1 steps.

    It is minimal where the prediction is the quantile `level` of the target: a target that lies y above the
    prediction costs level y, one that lies y below it costs (1 - level) y. At level 1/2 it is half the absolute
    error. Needs `measure=["predictions"]`.

    >>> import mainstem as ms
    >>> stream = ms.streams.arrays(np.ones((2, 1)), np.array([2.0, -1.0]), clients=2)
    >>> run = ms.simulate(ms.fedogd(0.5), ms.problems.linear(1), stream, steps=1, measure=["predictions"])
    >>> pinball(run, level=0.9)  # both are predicted as 0: (0.9 x 2 + 0.1 x 1) / 2
    array([0.95])
    """
    level = _level("pinball", level)

    def curve(predicted: np.ndarray, targets: np.ndarray) -> np.ndarray:
        above = _away(predicted, targets)
        costs = np.where(above > 0, level * above, (level - 1) * above)
        costs[np.isnan(targets)] = 0  # no sample
        counts = np.cumsum((~np.isnan(targets)).sum(axis=1))
        return np.cumsum(costs.sum(axis=1)) / np.maximum(counts, 1)

    return for_seeds(run, "pinball", "predictions", curve)


def error_quantile(run: Recorded, level: float = 0.9) -> np.ndarray:
    """The error that a share `level` of all predictions so far does not exceed, of all clients: a quantile of
    |target - prediction|, the smallest error with at least this share at or below it. Needs
    `measure=["predictions"]`."""
    level = _level("error_quantile", level)

    def curve(predicted: np.ndarray, targets: np.ndarray) -> np.ndarray:
        return _running_quantile(np.abs(_away(predicted, targets)), level)

    return for_seeds(run, "error_quantile", "predictions", curve)


def _level(owner: str, given: float) -> float:
    level = check.number(owner, "level", given)
    if not 0 < level < 1:
        raise check.refuse(owner, "level", "be above 0 and below 1", given)
    return level


def _away(predicted: np.ndarray, targets: np.ndarray) -> np.ndarray:
    return targets.astype(np.float64) - predicted.astype(np.float64)


def _running_quantile(rows: np.ndarray, level: float) -> np.ndarray:
    """The quantile of all values up to each row; NaN before the first value."""
    low: list[float] = []  # the share `level` of the values, negated: the largest is first
    high: list[float] = []
    found = np.full(len(rows), np.nan)
    for n, row in enumerate(rows):
        for each in row[~np.isnan(row)].tolist():
            heapq.heappush(high, -heapq.heappushpop(low, -each))
            if len(low) < math.ceil(level * (len(low) + len(high))):
                heapq.heappush(low, -heapq.heappop(high))
        if low:
            found[n] = -low[0]
    return found
