"""A recommender's log as a stream: what was shown to whom, and what came of it."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from mainstem import datasets
from mainstem.base import At, Sample, Stream
from mainstem.problems.bandit import Logged
from mainstem.spec import recorded

POSITIONS = 3


@recorded
def log(source: str = "open_bandit") -> Stream:
    """A logged bandit for `problems.replay`: a client for each user segment, rows in time order.

    The global context of an action is its item's features, the user's affinity to it and the
    position on the page; the local one its item's features again, for the segment's own taste. A
    segment whose rows are used up sees nothing more, so the stream is as long as the largest one.

    `log().actions` is not needed: the open bandit log has 80 items, 45 global and 41 local features.
    """
    table = datasets.load_log(source)
    names = np.unique(table.keys)
    shares = [np.flatnonzero(table.keys == name) for name in names]
    steps = max(len(share) for share in shares)
    rows = np.full((steps, len(names)), -1, np.int32)
    for k, share in enumerate(shares):
        rows[: len(share), k] = share

    def sample(resident: Any, row: Any, at: At) -> Sample:
        items, affinity, position, action, reward, propensity = resident
        place = jnp.maximum(row, 0)
        where = (jnp.arange(POSITIONS) == position[place]).astype(items.dtype)
        parts = items, affinity[place][:, None], jnp.tile(where, (len(items), 1))
        hidden = Logged(action[place], reward[place], propensity[place])
        return Sample((jnp.concatenate(parts, axis=1), items), hidden, (row >= 0).astype(jnp.int32))

    fields = ("items", "affinity", "position", "action", "reward", "propensity")
    return Stream(
        len(names),
        steps,
        resident=tuple(getattr(table, name) for name in fields),
        chunk=lambda seed, first, last: rows[first - 1 : last],
        sample=sample,
        rows=lambda: None,
    )
