"""A recommender's log as a stream: contexts, logged actions, their rewards and propensities."""

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from mainstem import datasets
from mainstem.base import At, Sample, Sampler
from mainstem.datasets import Log
from mainstem.problems.bandit import Logged
from mainstem.streams.deal import SILENT, Dealt, shared
from mainstem.streams.hosted import Hosted
from mainstem.value import leaf, static, value

POSITIONS = 3


@value
class entries(Sampler):
    """Sampler over the rows of a log on the device: `dealt` computes the row of a client at a step.

    >>> one, alone = np.ones(1), shared("log", [np.array([0])], SILENT)
    >>> log = entries(np.eye(2), np.ones((1, 2)), one, one, one, one / 2, alone)
    >>> log.sample((), At(1, 0, None), None).shown[0].shape
    (2, 6)
    """

    items: Any = leaf()  # [A, F]; all fields are as in `datasets.Log`
    affinity: Any = leaf()
    position: Any = leaf()
    action: Any = leaf()
    reward: Any = leaf()
    propensity: Any = leaf()
    dealt: Dealt = leaf()

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        found = self.dealt.row(at.t, at.k, None)
        row = jnp.maximum(found, 0)
        items = jnp.asarray(self.items)
        affinity, position, action, reward, propensity = (
            jnp.asarray(each)[row]
            for each in (self.affinity, self.position, self.action, self.reward, self.propensity)
        )
        where = (jnp.arange(POSITIONS) == position).astype(items.dtype)
        parts = items, affinity[:, None], jnp.tile(where, (len(items), 1))
        shown = jnp.concatenate(parts, axis=1), items
        here = (found >= 0).astype(jnp.int32)
        return Sample(shown, Logged(action, reward, propensity), here)


@value
class log(Hosted):
    """A logged bandit for `problems.replay`: one client per user segment, rows in time order.

    The global context of an action is its item's features, the user's affinity to it and the
    position on the page. The local context is the item's features again, for the segment's own
    preferences. A segment without further rows gets no more samples, so the number of steps is that of
    the largest segment.

    The open bandit log has 80 items, 45 global and 41 local features.

    >>> log("letter")
    Traceback (most recent call last):
    mainstem.errors.BadParameter: datasets: letter is a table, not a log; load('letter') loads it
    """

    source: str = static(default="open_bandit")

    def admit(self) -> None:
        _ = self.dealt

    @functools.cached_property
    def table(self) -> Log:
        """The log, loaded once."""
        return datasets.load_log(self.source)

    @functools.cached_property
    def dealt(self) -> Dealt:
        """Which row each segment gets at each step."""
        keys = self.table.keys
        shares = [np.flatnonzero(keys == name) for name in np.unique(keys)]
        return shared("log", shares, SILENT)

    @property
    def clients(self) -> int:
        """The number of segments."""
        return self.dealt.clients

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each segment."""
        return tuple(str(self.table.keys[rows[0]]) for rows in self.dealt.shares() or ())

    @property
    def steps(self) -> int | None:
        """The number of rows of the largest segment."""
        return self.dealt.steps

    @property
    def device(self) -> Sampler:
        columns = self.table._asdict()
        del columns["keys"]
        return entries(**columns, dealt=self.dealt)
