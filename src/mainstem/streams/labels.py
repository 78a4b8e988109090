"""Class labels: words, truth values and whole numbers become the classes 0, 1, ..., in sorted or given order."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mainstem import check
from mainstem.errors import BadData
from mainstem.value import static

Labels = tuple[Any, ...]
Classes = bool | Sequence[Any]  # whether the target is a label, or the labels in their order


def classes_field() -> Any:
    """A field of a stream: whether the target is a label, or the labels in their order."""
    return static(default=False, checked=_classes)


def _classes(owner: str, name: str, given: Any) -> Classes:
    if isinstance(given, bool | np.bool_):
        return bool(given)
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise check.refuse(owner, name, 'be true, or list the labels: ["fine", "faulty"]', given)
    listed = tuple(given)
    if len(listed) < 2 or len(set(listed)) < len(listed):
        raise check.refuse(owner, name, "list two or more different labels", given)
    return listed


def classes_of(owner: str, found: Iterable[Any], given: Classes = True) -> Labels | None:
    """The label of each class, for the distinct labels of a target; None: they are 0, 1, ... already.

    Whole numbers of at least 0 are not mapped, because a class can be absent from the data.

    >>> classes_of("csv", ["on", "off"]), classes_of("csv", [-1.0, 1.0]), classes_of("csv", [2, 0])
    (('off', 'on'), (-1.0, 1.0), None)
    >>> classes_of("csv", ["on", "off"], given=("on", "off"))
    ('on', 'off')
    """
    labels = set(found)
    if not isinstance(given, bool):
        unknown = sorted(map(repr, labels - set(given)))
        if unknown:
            listed = ", ".join(map(repr, given))
            raise BadData(f"{owner}: the target has the label {unknown[0]}, classes has {listed}")
        return tuple(given)
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
    listed = np.asarray(labels)
    order = np.argsort(listed)
    return order[np.searchsorted(listed, values, sorter=order)].astype(np.int32)
