"""Real data as streams: scikit-learn's bundled digits, and the named datasets of `mainstem data`."""

import numpy as np

from mainstem import datasets
from mainstem.base import Stream
from mainstem.errors import MainstemError
from mainstem.spec import recorded
from mainstem.streams.arrays import arrays
from mainstem.streams.deal import Deal, by_key


@recorded
def digits(clients: int, deal: Deal | None = None) -> Stream:
    """1,797 handwritten digits of 8 x 8 pixels in [0, 1]: nothing to download.

    >>> digits(clients=100).resident[0].shape
    (1797, 64)
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MainstemError("digits: needs scikit-learn: pip install 'mainstem[lab]'") from None
    features, target = load_digits(return_X_y=True)
    return arrays(features.astype(np.float32) / 16, target.astype(np.int32), clients, deal)


@recorded
def dataset(source: str, clients: int | None = None, deal: Deal | None = None) -> Stream:
    """A dataset by its name in `mainstem data list`, held-out rows left out.

    Data that names its own sites (`pjm_hourly`) goes to them by key unless dealt otherwise.
    """
    table = datasets.load(source)
    used = len(table.target) - table.held_out
    keys = None if table.keys is None else table.keys[:used]
    if keys is not None and deal is None:
        deal = by_key()
    return arrays(table.features[:used], table.target[:used], clients, deal, keys)
