"""Scaling: features in units of what a client has seen so far."""

import abc

import numpy as np

from mainstem.parts.missing import Missing
from mainstem.value import Value, value


class Scale(Value):
    """A way to scale features."""

    @abc.abstractmethod
    def scaled(self, rows: np.ndarray) -> np.ndarray:
        """The rows [n, F] of a client in the order of its steps, each scaled by itself and the earlier rows."""


@value
class standardised(Scale):
    """Less the running mean, over the running deviation, of the same client; 0 as long as there is no deviation.

    The features of a step are shown before the decision, so they count; nothing later does. The best model in
    hindsight sees the same scaled features.

    >>> standardised().scaled(np.array([[1.0], [3.0], [2.0]])).tolist()
    [[0.0], [1.0], [0.0]]
    """

    def scaled(self, rows: np.ndarray) -> np.ndarray:
        wide, count = rows.astype(np.float64), np.arange(1, len(rows) + 1)[:, None]
        mean = np.cumsum(wide, axis=0) / count
        before = np.concatenate([mean[:1], mean[:-1]])
        squares = np.cumsum((wide - before) * (wide - mean), axis=0)  # Welford's
        deviation = np.sqrt(np.maximum(squares, 0) / count)
        apart = deviation > 1e-12 * np.abs(mean)  # else it is rounding
        return np.where(apart, (wide - mean) / np.where(apart, deviation, 1), 0).astype(rows.dtype)


def prepared(rows: np.ndarray, missing: Missing | None, scale: Scale | None) -> np.ndarray:
    """The rows of a client without gaps, and scaled; indicators of gaps are not scaled."""
    features = rows.shape[1]
    filled = rows if missing is None else missing.fill(rows)
    if scale is None:
        return filled
    return np.concatenate([scale.scaled(filled[:, :features]), filled[:, features:]], axis=1)
