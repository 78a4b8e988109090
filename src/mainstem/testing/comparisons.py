"""Comparisons whose failures name what was promised, and the two numbers."""

from typing import Any

import numpy as np


def promised(kept: Any, what: str, found: Any, wanted: Any) -> None:
    """Raises an AssertionError with both values unless the promise is kept."""
    if not kept:
        raise AssertionError(f"{what}: {found}, not {wanted}")


def same(one: Any, other: Any, what: str, tolerance: float = 0.0) -> None:
    """Raises an AssertionError with the two numbers that differ most, if they differ by more than `tolerance`.

    The tolerance is relative to numbers above 1.
    """
    one, other = np.asarray(one), np.asarray(other)
    promised(one.shape == other.shape, f"{what}: shapes", one.shape, other.shape)
    if one.dtype == bool:
        one, other = one.astype(int), other.astype(int)
    equal = (one == other) | (np.isnan(one) & np.isnan(other))
    apart = np.where(equal, 0.0, np.abs(one - other))
    apart = np.where(np.isnan(apart), np.inf, apart) / np.maximum(1, np.fmax(abs(one), abs(other)))
    if apart.size and apart.max() > tolerance:
        place = np.unravel_index(np.argmax(apart), apart.shape)
        pair = f"{one[place]} and {other[place]}"
        where = ", ".join(str(int(each)) for each in place)
        raise AssertionError(f"{what}: {pair} differ at [{where}]")


def another(one: Any, other: Any, what: str) -> None:
    """Raises an AssertionError if two results are equal that must differ."""
    if np.array_equal(one, other):
        raise AssertionError(f"{what}: must change, but all {np.size(one)} numbers are the same")
