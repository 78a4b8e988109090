"""Class labels: words, truth values and whole numbers become the classes 0, 1, ..., in sorted order."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from mainstem.errors import BadData

Labels = tuple[Any, ...]


def classes_of(owner: str, found: Iterable[Any]) -> Labels | None:
    """The label of each class, for the distinct labels of a target; None: they are 0, 1, ... already.

    Whole numbers of at least 0 are not mapped, because a class can be absent from the data.

    >>> classes_of("csv", ["on", "off"]), classes_of("csv", [-1.0, 1.0]), classes_of("csv", [2, 0])
    (('off', 'on'), (-1.0, 1.0), None)
    """
    labels = set(found)
    if all(isinstance(label, bool) for label in labels):
        return False, True
    if all(isinstance(label, str) for label in labels):
        return tuple(sorted(labels))
    if any(isinstance(label, str | bool) or not isinstance(label, int | float) for label in labels):
        some = ", ".join(sorted(map(repr, labels))[:3])
        raise BadData(f"{owner}: labels must all be words, truth values or numbers: {some}, ...")
    return None if min(labels) >= 0 else tuple(sorted(labels))


def no_label(value: Any) -> bool:
    """Whether a value is missing, or a number that is not whole."""
    if isinstance(value, float):
        return not value.is_integer()  # of NaN and infinity too
    return value is None


def as_classes(values: np.ndarray, labels: Labels | None) -> np.ndarray:
    """The class of each value."""
    if labels is None:
        return values.astype(np.int32)
    return np.searchsorted(np.asarray(labels), values).astype(np.int32)
