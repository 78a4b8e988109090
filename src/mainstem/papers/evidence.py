"""Evidence: a claim as margins that must be above zero, and a verdict from their spread.

A margin is an array with one value for each seed. A claim holds if the 99 % interval of the mean of each of its
margins is above zero, does not hold if that of one margin is below zero, and is undecided otherwise. Two sides
are compared seed by seed, since both have the same stream; statistics over all seeds (a fit, a level in dB) are
given as jackknife pseudo-values. A margin of a single number is exact.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
# Recorded if the effect is about as large as the spread: some seeds decide it and others do not.
NEARLY, HARDLY = f"{HOLDS} or {UNDECIDED}", f"{FAILS} or {UNDECIDED}"
CONFIDENCE = 0.99


class Evidence(NamedTuple):
    """What was measured, in words, and the margins that must be above zero."""

    measured: str
    margins: tuple[np.ndarray, ...]


def interval(samples: np.ndarray) -> tuple[float, float]:
    """The mean of the samples and half the width of its 99 % interval (Student's t)."""
    from scipy.special import stdtrit

    samples = np.atleast_1d(np.asarray(samples, np.float64))
    if len(samples) == 1:
        return float(samples[0]), 0.0
    error = samples.std(ddof=1) / np.sqrt(len(samples))
    return float(samples.mean()), float(stdtrit(len(samples) - 1, (1 + CONFIDENCE) / 2) * error)


def verdict(evidence: Evidence) -> str:
    """Whether all margins are above zero, as far as the spread permits a decision.

    >>> verdict(Evidence("", (np.array([1.0, 1.1, 0.9]),)))
    'holds'
    >>> verdict(Evidence("", (np.array([1.0, 1.1, 0.9]), np.array([-1.0, 1.0, 0.5]))))
    'undecided'
    >>> verdict(Evidence("", (np.array([1.0, 1.1, 0.9]), np.array([-1.0, -1.1, -0.9]))))
    'does not hold'
    """
    found = [_sign(*interval(samples)) for samples in evidence.margins]
    if FAILS in found:
        return FAILS
    return HOLDS if all(each == HOLDS for each in found) else UNDECIDED


def _sign(mean: float, half: float) -> str:
    if mean - half > 0:
        return HOLDS
    return FAILS if mean + half < 0 or (half == 0 and mean <= 0) else UNDECIDED


def shown(samples: Any) -> str:
    """A mean with half its interval, to as many digits as the interval justifies.

    >>> shown(np.array([0.95, 0.96, 0.955])), shown(np.array([0.5151]))
    ('0.955 ± 0.029', '0.5151')
    """
    mean, half = interval(samples)
    if half == 0 or not np.isfinite(half):
        return f"{mean:.4g}"
    digits = max(0, 1 - int(np.floor(np.log10(half))))
    return f"{mean:.{digits}f} ± {half:.{digits}f}"


def rising(named: Mapping[str, np.ndarray]) -> Evidence:
    """Each value is above the one before it."""
    values = list(named.values())
    text = " < ".join(f"{name}: {shown(each)}" for name, each in named.items())
    return Evidence(text, tuple(b - a for a, b in itertools.pairwise(values)))


def falling(named: Mapping[str, np.ndarray]) -> Evidence:
    """Each value is below the one before it."""
    upwards = rising(dict(reversed(list(named.items()))))
    text = " > ".join(f"{name}: {shown(each)}" for name, each in named.items())
    return Evidence(text, upwards.margins)


def near(named: Mapping[str, np.ndarray], within: float) -> Evidence:
    """The first value differs from the second by at most `within`."""
    (one, a), (other, b) = named.items()
    text = f"{one}: {shown(a)}, {other}: {shown(b)}, difference {shown(a - b)}, allowed {within:g}"
    return Evidence(text, (within - (a - b), within + (a - b)))


def not_below(named: Mapping[str, np.ndarray], by: float) -> Evidence:
    """The first value is at most `by` below the second."""
    (one, a), (other, b) = named.items()
    text = f"{one}: {shown(a)}, {other}: {shown(b)}, difference {shown(a - b)}, allowed {-by:g}"
    return Evidence(text, (a - b + by,))


def between(name: str, samples: np.ndarray, low: float, high: float) -> Evidence:
    """The statistic is between two numbers."""
    text = f"{name} {shown(samples)}, wanted in ({low:g}, {high:g})"
    return Evidence(text, tuple(m for m in (samples - low, high - samples) if np.isfinite(m).all()))


def all_of(*each: Evidence) -> Evidence:
    """Combines several pieces of evidence, all of which must hold."""
    return Evidence("; ".join(one.measured for one in each), sum((one.margins for one in each), ()))


def jackknife(statistic: Callable[..., float], *values: np.ndarray) -> np.ndarray:
    """Pseudo-values of a statistic over all seeds: n s - (n - 1) s_without_i.

    >>> jackknife(np.mean, np.array([1.0, 2.0, 6.0])).round(6).tolist()
    [1.0, 2.0, 6.0]
    """
    count = len(values[0])
    whole = statistic(*values)
    if count == 1:
        return np.array([whole])
    without = [statistic(*(np.delete(each, n, axis=0) for each in values)) for n in range(count)]
    return count * whole - (count - 1) * np.array(without)


def exponent(at: Sequence[float], values: np.ndarray) -> np.ndarray:
    """The exponent of `at` with which the mean of `values` [seeds, points] grows, as pseudo-values."""
    logs = np.log(np.asarray(at, np.float64))
    return jackknife(lambda v: float(np.polyfit(logs, np.log(v.mean(axis=0)), 1)[0]), values)


def fit(shape: Callable[[np.ndarray], np.ndarray], at: np.ndarray, values: np.ndarray) -> float:
    """R^2 of a + b shape(at) on the mean of `values` [seeds, points]."""
    x, y = shape(np.asarray(at, np.float64)), values.mean(axis=0)
    b, a = np.polyfit(x, y, 1)
    return float(1 - np.sum((y - a - b * x) ** 2) / np.sum((y - y.mean()) ** 2))


def logarithmic(name: str, at: np.ndarray, values: np.ndarray) -> Evidence:
    """The mean of `values` [seeds, points] grows like log(at): log fits better than the square root."""
    better = jackknife(lambda v: fit(np.log, at, v) - fit(np.sqrt, at, v), values)
    log, root = fit(np.log, at, values), fit(np.sqrt, at, values)
    return Evidence(f"{name}: R² {log:.4f} for log T, {root:.4f} for √T", (better,))
