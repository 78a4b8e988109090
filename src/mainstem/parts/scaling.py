"""Scaling: features in units of what a client has seen so far."""

import abc
from collections.abc import Mapping

import numpy as np

from mainstem.parts.missing import Missing
from mainstem.value import Value, value


class Scale(Value):
    """A way to scale features."""

    @abc.abstractmethod
    def scaled(self, rows: np.ndarray) -> np.ndarray:
        """The rows [n, F] of a client in the order of its steps, each scaled by itself and the earlier rows."""

    @abc.abstractmethod
    def seen(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """What a client knows after these rows [n, F], or after none: numbers, and arrays [F]."""

    @abc.abstractmethod
    def following(self, rows: np.ndarray, seen: Mapping[str, np.ndarray]) -> np.ndarray:
        """The rows [n, F], each scaled as the next row of a client that knows `seen`."""


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
        return _in_deviations(wide, mean, squares / count).astype(rows.dtype)

    def seen(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        wide, count = rows.astype(np.float64), len(rows)
        none = np.zeros(rows.shape[1])
        return {
            "count": np.array(count, np.float64),
            "mean": wide.mean(axis=0) if count else none,
            "deviation": wide.std(axis=0) if count else none,
        }

    def following(self, rows: np.ndarray, seen: Mapping[str, np.ndarray]) -> np.ndarray:
        wide, count = rows.astype(np.float64), seen["count"] + 1
        before = seen["mean"]
        mean = before + (wide - before) / count
        squares = seen["count"] * seen["deviation"] ** 2 + (wide - before) * (wide - mean)
        return _in_deviations(wide, mean, squares / count).astype(rows.dtype)


def _in_deviations(rows: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """The rows less the mean, in deviations; 0 where there is no deviation."""
    deviation = np.sqrt(np.maximum(variance, 0))
    apart = deviation > 1e-12 * np.abs(mean)  # else it is rounding
    return np.where(apart, (rows - mean) / np.where(apart, deviation, 1), 0)


def prepared(rows: np.ndarray, missing: Missing | None, scale: Scale | None) -> np.ndarray:
    """The rows of a client without gaps, and scaled; indicators of gaps are not scaled."""
    features = rows.shape[1]
    filled = rows if missing is None else missing.fill(rows)
    if scale is None:
        return filled
    return np.concatenate([scale.scaled(filled[:, :features]), filled[:, features:]], axis=1)


def seen(rows: np.ndarray, missing: Missing | None, scale: Scale | None) -> dict[str, np.ndarray]:
    """What a client knows after these rows, by which its next row is prepared; see `following`."""
    found = {} if missing is None else {"fill": missing.next_fill(rows)}
    if scale is None:
        return found
    filled = rows if missing is None else missing.fill(rows)[:, : rows.shape[1]]
    return found | scale.seen(filled)


def following(
    rows: np.ndarray,
    known: Mapping[str, np.ndarray],
    missing: Missing | None,
    scale: Scale | None,
) -> np.ndarray:
    """The rows, each prepared as the next one of a client that knows what `seen` returned.

    >>> from mainstem.parts.missing import last_value
    >>> part, rows = last_value(), np.array([[1.0], [3.0], [np.nan], [2.0]])
    >>> following(rows[3:], seen(rows[:3], part, standardised()), part, standardised()).round(9).tolist()
    [[-0.301511345]]
    >>> prepared(rows, part, standardised())[3:].round(9).tolist()
    [[-0.301511345]]
    """
    gaps = np.isnan(rows)
    filled = rows if missing is None else np.where(gaps, known["fill"], rows)
    scaled = filled if scale is None else scale.following(filled, known)
    if missing is None or not missing.indicator:
        return scaled
    return np.concatenate([scaled, gaps], axis=1, dtype=scaled.dtype)
