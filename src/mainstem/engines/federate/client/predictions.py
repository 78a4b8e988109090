"""Predictions whose label has not come: each with the model that made it.

Many predictions may wait for long. Those of one model share it, and their models together have a limited size: the
oldest predictions are forgotten first. A label of a forgotten one is learnt with the current model.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

MAX_PREDICTIONS = 4096
MAX_BYTES = 2**25  # of all their models


class _Model:
    """A model, and how many predictions were made with it."""

    def __init__(self, params: Any):
        self.params = params
        self.nbytes = sum(leaf.nbytes for leaf in jax.tree.leaves(params))
        self.uses = 0

    def equals(self, params: Any) -> bool:
        mine, others = jax.tree.leaves(self.params), jax.tree.leaves(params)
        return all(map(np.array_equal, mine, others))


class _Moment:
    """A state of the client. Its model is computed only if the state changes while predictions of it wait."""

    __slots__ = "change", "client", "model", "waiting"  # one for each prediction: this is quicker

    def __init__(self, change: int, client: Any):
        self.change = change
        self.client = client
        self.model: _Model | None = None
        self.waiting = 0


class Predictions:
    """The predictions of one client, by what was shown."""

    def __init__(self, model_of: Callable[[Any], Any]):
        self._model_of = model_of
        self._waiting: dict[bytes, _Moment] = {}
        self._newest: _Moment | None = None
        self._last: _Model | None = None
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, shown: bytes, change: int, client: Any) -> None:
        """Remembers a prediction, made by `client` after so many changes of it."""
        if shown in self._waiting:
            self._drop(shown)
        newest = self._newest
        if newest is None or newest.change != change:
            if newest is not None and newest.waiting:
                self._settle(newest)
            newest = self._newest = _Moment(change, client)
        newest.waiting += 1
        self._waiting[shown] = newest
        while len(self._waiting) > MAX_PREDICTIONS or self.nbytes > MAX_BYTES:
            self._drop(next(iter(self._waiting)))

    def pop(self, shown: bytes, change: int) -> Any:
        """The model that predicted for this; None if the client has not changed since, or it is forgotten."""
        moment = self._waiting.get(shown)
        if moment is None:
            return None
        late = moment.change != change
        params = None
        if late:
            params = self._model_of(moment.client) if moment.model is None else moment.model.params
        self._drop(shown)
        return params

    def _settle(self, moment: _Moment) -> None:
        """Keeps only the model of a state that has changed since."""
        params = self._model_of(moment.client)
        if self._last is None or self._last.uses == 0 or not self._last.equals(params):
            self._last = _Model(params)
            self.nbytes += self._last.nbytes
        moment.model, moment.client = self._last, None
        self._last.uses += moment.waiting

    def _drop(self, shown: bytes) -> None:
        moment = self._waiting.pop(shown, None)
        if moment is None:
            return
        moment.waiting -= 1
        if moment.model is not None:
            moment.model.uses -= 1
            if moment.model.uses == 0:
                self.nbytes -= moment.model.nbytes
