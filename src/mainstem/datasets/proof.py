"""Proofs: functions that verify the arrays of a dataset."""

import hashlib
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from mainstem.datasets.named_arrays import Arrays, fingerprint

Proof: TypeAlias = Callable[[Arrays], str]
"""Says in a few words what is wrong with some arrays; nothing at all if they are right."""


def sha256(expected: str) -> Proof:
    """A proof that the arrays have that fingerprint."""

    def fault(arrays: Arrays) -> str:
        found = fingerprint(arrays)
        return "" if found == expected else f"sha256 {found[:12]}, expected {expected[:12]}"

    return fault


_SENSORLESS_ROWS = frozenset(
    [
        "eeeb1d6a3b6737b1",
        "e14616d60ec86bf2",
        "7ef1fbe589fc21be",
        "06fb64dd46bc3da3",
        "a6054fb12d58ead1",
        "8142368b388153b5",
        "d197d32ecdfa6db1",
        "28d240aca40827c9",
        "da78d08fb6e01ea9",
        "af8ea9419b6ef5f0",
        "fd33684d6f34e54e",
    ]
)


def sensorless(arrays: Arrays) -> str:
    """Verifies the full Sensorless set, of which no copy was available to take a fingerprint from.

    Known instead are its size, 5,319 rows for each of 11 classes, and one row of each class, from the 2,200
    rows that are available.
    """
    if set(arrays) != {"X", "y"} or arrays["X"].shape != (58_509, 48):
        return "not 58509 rows of 48 features"
    if arrays["X"].dtype != np.float32 or arrays["y"].dtype != np.uint8:
        return "not float32 features and uint8 labels"
    if np.bincount(arrays["y"], minlength=12).tolist() != [0] + [5_319] * 11:
        return "not 5319 rows for each of the classes 1 to 11"
    absent = len(_SENSORLESS_ROWS - row_digests(arrays))
    return f"{absent} of {len(_SENSORLESS_ROWS)} known rows are absent" if absent else ""


def row_digests(arrays: Arrays) -> set[str]:
    """A short digest of every row with its label, independent of their order."""
    rows = zip(arrays["X"].astype("<f4"), arrays["y"].tolist(), strict=True)
    return {hashlib.sha256(x.tobytes() + bytes([y])).hexdigest()[:16] for x, y in rows}
