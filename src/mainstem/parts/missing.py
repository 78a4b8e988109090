"""Missing values: ways to fill them, for each client from what it has seen before."""

import abc

import numpy as np

from mainstem.value import Value, flag, number, value


class Missing(Value):
    """A way to fill missing features. With `indicator`, each feature gets a second one: 1 where it was missing."""

    start: float
    indicator: bool

    @abc.abstractmethod
    def past(self, rows: np.ndarray, gaps: np.ndarray) -> np.ndarray:
        """What each row is filled with, from the earlier rows alone; `gaps` tells what is missing."""

    def next_fill(self, rows: np.ndarray) -> np.ndarray:
        """What gaps in the row after these rows [n, F] are filled with: [F]."""
        after = np.concatenate([rows, np.full((1, rows.shape[1]), np.nan)]).astype(np.float64)
        return self.past(after, np.isnan(after))[-1]

    def width(self, features: int) -> int:
        """The number of features after filling."""
        return 2 * features if self.indicator else features

    def fill(self, rows: np.ndarray) -> np.ndarray:
        """The rows [n, F] of a client in the order of its steps, without NaN: [n, F], or [n, 2 F]."""
        gaps = np.isnan(rows)
        filled = np.where(gaps, self.past(rows, gaps), rows).astype(rows.dtype)
        return (
            np.concatenate([filled, gaps], axis=1, dtype=rows.dtype) if self.indicator else filled
        )


@value
class last_value(Missing):
    """The last known value of the same client; `start` before there is one.

    >>> last_value().fill(np.array([[np.nan], [2.0], [np.nan]])).tolist()
    [[0.0], [2.0], [2.0]]
    """

    start: float = number(default=0.0)
    indicator: bool = flag(default=False)

    def past(self, rows: np.ndarray, gaps: np.ndarray) -> np.ndarray:
        known = np.where(gaps, -1, np.arange(len(rows))[:, None])
        last = np.maximum.accumulate(known, axis=0)
        return np.where(last < 0, self.start, np.take_along_axis(rows, np.maximum(last, 0), axis=0))


@value
class running_mean(Missing):
    """The mean of the values that the same client has seen; `start` before there is one.

    >>> running_mean(indicator=True).fill(np.array([[1.0], [3.0], [np.nan]])).tolist()
    [[1.0, 0.0], [3.0, 0.0], [2.0, 1.0]]
    """

    start: float = number(default=0.0)
    indicator: bool = flag(default=False)

    def past(self, rows: np.ndarray, gaps: np.ndarray) -> np.ndarray:
        total = np.cumsum(np.where(gaps, 0, rows), axis=0, dtype=np.float64)
        count = np.cumsum(~gaps, axis=0)
        return np.where(count == 0, self.start, total / np.maximum(count, 1))
