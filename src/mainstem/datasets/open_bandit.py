"""Open Bandit: items that ZOZOTOWN's shop showed at random in a week, and the users' clicks.

Saito et al. 2021, "Open Bandit Dataset and Pipeline". This is the small sample in the package obp, random
policy, campaign "all": 10,000 impressions, 80 items, 38 clicks. Every item was shown with the same probability,
so any policy can be evaluated on it without a model.
"""

import numpy as np
from numpy.typing import NDArray

from mainstem.datasets import formats
from mainstem.datasets.decision_log import Log, logged
from mainstem.datasets.named_arrays import Array, Arrays
from mainstem.datasets.source import text
from mainstem.datasets.uci import Members
from mainstem.errors import BadData

FOLDER = "obp/dataset/obd/random/all"
ITEMS = "item_context"  # prefix of the names of the items' columns: both tables have an item_id
COUNTS = ("item_id", "position", "click")
SEGMENT = "user_feature_2"
RARE = 0.02


def convert(member: Members) -> Arrays:
    """The two CSV tables of the wheel, without the row numbers that pandas wrote in the first column."""
    log, items = (_table(member(f"{FOLDER}/{name}.csv")) for name in ("all", "item_context"))
    counts = {name: log[name].astype(np.int64) for name in COUNTS}
    return {**log, **counts, **{f"{ITEMS}/{name}": column for name, column in items.items()}}


def decode(arrays: Arrays) -> Log:
    """Impressions in time order, with the segment of users as the client.

    Four hashed features describe a user. The segment is `user_feature_2` alone: it separates users best. In
    features 0 and 1, more than four rows in five have the same value, and feature 3 puts seven in ten into two;
    together they give 240 groups, most of them tiny. Values with less than 2% of the rows are pooled as
    "other". This gives seven segments: 2437, 2319, 1588, 1547, 1423 and 543 rows, and 143 others. Pooling only
    the one value below 100 rows would give a client with nine rows.
    """
    order = np.argsort(arrays["timestamp"], kind="stable")  # ISO 8601, all in UTC
    rows = {name: column[order] for name, column in arrays.items() if not name.startswith(ITEMS)}
    items = _items(arrays)
    return logged(
        items=items,
        affinity=np.stack([rows[f"user-item_affinity_{n}"] for n in range(len(items))], axis=1),
        position=rows["position"] - 1,
        action=rows["item_id"],
        reward=rows["click"],
        propensity=rows["propensity_score"],
        keys=pooled(rows[SEGMENT]),
    )


def pooled(values: Array, *, rare: float = RARE) -> NDArray[np.str_]:
    """Replaces values that have less than a share `rare` of the rows by "other".

    >>> import numpy as np
    >>> pooled(np.array(["a", "b", "a", "c"]), rare=0.5).tolist()
    ['a', 'other', 'a', 'other']
    """
    found, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.where(counts < rare * len(values), "other", found)[which]


def _items(arrays: Arrays) -> Array:
    """[A, F]: feature 0 standardised, features 1 to 3 one-hot; constant columns are dropped."""
    numbers = arrays[f"{ITEMS}/item_id"]
    order = np.argsort(numbers)
    if not np.array_equal(numbers[order], np.arange(len(numbers))):
        raise BadData(f"open_bandit: the items must be numbered from 0 to {len(numbers) - 1}")
    scale, *kinds = (arrays[f"{ITEMS}/item_feature_{n}"][order] for n in range(4))
    columns = [(scale - scale.mean())[:, None] / (scale.std() or 1.0)]
    columns += [kind[:, None] == np.unique(kind) for kind in kinds]
    features = np.concatenate(columns, axis=1)
    return features[:, np.ptp(features, axis=0) > 0]


def _table(body: bytes) -> dict[str, Array]:
    header, rows = formats.csv_rows(text(body).splitlines())
    return formats.columns(header[1:], [row[1:] for row in rows])
