"""Streams of real data: scikit-learn's digits, and the datasets of `mainstem data`."""

import functools
from typing import Any

import numpy as np

from mainstem import datasets
from mainstem.errors import MainstemError
from mainstem.streams.arrays import Rows, Table, usual
from mainstem.streams.deal import Deal, evenly
from mainstem.value import integer, part, static, value


@value
class digits(Rows):
    """1,797 handwritten digits of 8 x 8 pixels in [0, 1], included in scikit-learn: no download.

    >>> digits(clients=100).rows().shown.shape
    (1797, 64)
    """

    clients: int = integer(least=1)
    deal: Deal = part(Deal, "evenly()", default=evenly())

    @property
    def table(self) -> Table:
        return Table(*_digits(), None, self.deal)


@functools.cache
def _digits() -> tuple[np.ndarray, np.ndarray]:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MainstemError("digits: needs scikit-learn: pip install 'mainstem[lab]'") from None
    features, target = load_digits(return_X_y=True)
    return features.astype(np.float32) / 16, target.astype(np.int32)


@value
class dataset(Rows):
    """A dataset by its name in `mainstem data list`, without its held-out rows.

    Data that contains client keys (`pjm_hourly`) is dealt by key unless `deal` is given.

    >>> dataset("letters", clients=10)
    Traceback (most recent call last):
    mainstem.errors.BadParameter: datasets: there is no 'letters'; did you mean letter?
    """

    source: str = static()
    clients: Any = static(default=None)
    deal: Deal | None = part(Deal, "evenly()", default=None)

    @functools.cached_property
    def table(self) -> Table:
        """The rows that are not held out, loaded once."""
        whole = datasets.load(self.source)
        used = len(whole.target) - whole.held_out
        keys = None if whole.keys is None else whole.keys[:used]
        deal = self.deal or usual(keys)
        return Table(whole.features[:used], whole.target[:used], keys, deal)
