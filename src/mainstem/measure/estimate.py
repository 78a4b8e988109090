"""Measured numbers: exact, a bound, or with an interval."""

from typing import Any, NamedTuple

import numpy as np
from scipy import special

EXACT, LEAST, MOST, ABOUT = "exact", "at least", "at most", "about"
INTERVAL = "95 % interval"


class Estimate(NamedTuple):
    """A number between `low` and `high`; `how` states what these limits mean.

    >>> print(exact(2.0), "|", at_least(3.0), "|", at_most(4.0))
    2 (exact) | at least 3 | at most 4
    """

    value: float
    low: float
    high: float
    how: str

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        if self.how == EXACT:
            return f"{self.value:.6g} (exact)"
        if self.how in (LEAST, MOST, ABOUT):
            return f"{self.how} {self.value:.6g}"
        return f"{self.value:.6g} in [{self.low:.6g}, {self.high:.6g}] ({self.how})"


def exact(value: Any) -> Estimate:
    """A value from a closed form."""
    return Estimate(float(value), float(value), float(value), EXACT)


def at_least(value: Any) -> Estimate:
    """A lower bound on a supremum: the largest value found."""
    return Estimate(float(value), float(value), np.inf, LEAST)


def at_most(value: Any) -> Estimate:
    """A proven upper bound on a supremum."""
    return Estimate(float(value), 0.0, float(value), MOST)


def about(value: Any, within: float = np.inf) -> Estimate:
    """A value from a search or from some of the samples; its error is at most `within`, if that is known."""
    value = float(value)
    return Estimate(value, max(0.0, value - within), value + within, ABOUT)


def mean(values: Any) -> Estimate:
    """The mean of independent values, with Student's interval at 95 %.

    >>> print(mean([1.0, 2.0, 3.0]))
    2 in [-0.484138, 4.48414] (95 % interval)
    """
    sample = np.ravel(np.asarray(values, np.float64))
    middle = float(sample.mean())
    if len(sample) < 2:
        return Estimate(middle, -np.inf, np.inf, INTERVAL)
    error = sample.std(ddof=1) / np.sqrt(len(sample))
    reach = float(special.stdtrit(len(sample) - 1, 0.975) * error)
    return Estimate(middle, middle - reach, middle + reach, INTERVAL)
