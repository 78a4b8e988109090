"""Table: a loaded dataset, and the scaling of features and labels that every dataset uses."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mainstem.datasets.named_arrays import Array


class Table(NamedTuple):
    """Rows ready to be divided among clients, in the order of the source."""

    features: NDArray[np.float32]
    """[N, F], or [N, 28, 28] for images."""
    target: Array
    """int32 labels 0..classes-1, or float32 values of a regression."""
    classes: int | None
    """None for a regression."""
    names: tuple[str, ...] = ()
    """One a feature, where the source names them."""
    keys: NDArray[np.str_] | None = None
    """The client that each row belongs to, where the data says so."""
    held_out: int = 0
    """How many rows at the end are the source's own test part."""


def unit(numbers: Array) -> NDArray[np.float32]:
    """Scales every column to [0, 1] by its own range; unchanged if all values are already in [0, 1].

    The range is that of the complete set, test rows included: it fixes units, as a sensor's data sheet would,
    and reveals no label. A constant column becomes zero.

    >>> import numpy as np
    >>> unit(np.array([[2.0, 5.0], [4.0, 5.0]])).tolist()
    [[0.0, 0.0], [1.0, 0.0]]
    """
    wide = numbers.astype(np.float64)
    low, high = wide.min(axis=0), wide.max(axis=0)
    if low.min() >= 0 and high.max() <= 1:
        return wide.astype(np.float32, order="C")
    span = np.where(high > low, high - low, 1.0)
    scaled: Array = (wide - low) / span
    return scaled.astype(np.float32, order="C")


def labelled(codes: Array) -> tuple[NDArray[np.int32], int]:
    """Class codes of any kind as 0..C-1 in sorted order, and C.

    >>> import numpy as np
    >>> labels, classes = labelled(np.array([7, 1, 2, 7]))
    >>> labels.tolist(), classes
    ([2, 0, 1, 2], 3)
    """
    found, labels = np.unique(codes, return_inverse=True)
    return labels.astype(np.int32), len(found)
