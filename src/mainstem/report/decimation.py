"""Decimation: the points of a long curve that a page keeps, its extremes among them."""

import numpy as np


def kept(curve: np.ndarray, most: int) -> np.ndarray:
    """The places of at most `most` points: the first, the last, and the least and greatest of each stretch.

    A stretch without a finite value keeps its first point.

    >>> kept(np.array([0.0, 9.0, 1.0, 2.0, -5.0, 3.0, 4.0, 5.0]), 6).tolist()
    [0, 1, 4, 7]
    >>> kept(np.arange(4.0), 6).tolist()
    [0, 1, 2, 3]
    """
    if len(curve) <= most:
        return np.arange(len(curve))
    stretches = max(1, most // 2 - 1)
    begins = np.linspace(0, len(curve), stretches, endpoint=False).astype(int)
    ends = np.append(begins[1:], len(curve))
    values = np.where(np.isfinite(curve), curve, np.nan)
    missing = np.isnan(values)
    low, high = np.where(missing, np.inf, values), np.where(missing, -np.inf, values)
    found = {0, len(curve) - 1}
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        found |= {begin + int(low[begin:end].argmin()), begin + int(high[begin:end].argmax())}
    return np.array(sorted(found))
