"""Compares the clients' losses with those of a fixed model, the candidate, for a lower bound of the regret.

The hub has no data, so it knows neither the best fixed model nor the regret. But every fixed model has at least
the loss of the best one: the regret is at least the clients' loss minus a candidate's loss on the same samples.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import random, replay
from mainstem.base import Sample
from mainstem.engines.federate.protocol.messages import MAX_LOSS, Broadcast
from mainstem.engines.federate.protocol.run_document import RunDocument

MAX_COUNT = 2**53


class Compared(NamedTuple):
    """The losses of a client and of a candidate on the same samples."""

    version: int  # of the candidate: the number of merges in it
    samples: int
    loss: float
    candidate: float


def checked(found: Compared) -> Compared:
    """Returns a comparison, or raises ValueError if it is not what a client measures."""
    counts = found.version, found.samples
    if not all(type(count) is int and 0 <= count <= MAX_COUNT for count in counts):
        raise ValueError("not counts")
    sums = found.loss, found.candidate
    if not all(type(value) in (int, float) and -MAX_LOSS <= value <= MAX_LOSS for value in sums):
        raise ValueError("not losses")
    return found


def against(each: Sequence[Compared]) -> dict[str, float] | None:
    """The comparisons of all clients with the newest candidate, and the lower bound of their regret."""
    if not each:
        return None
    version = max(compared.version for compared in each)
    counted = [compared for compared in each if compared.version == version]
    samples, loss, candidate = (sum(values) for values in list(zip(*counted, strict=True))[1:])
    regret = {"regret_at_least": loss - candidate}
    return {"version": version, "samples": samples, "loss": loss, "candidate": candidate} | regret


class Candidate:
    """A candidate at one client; `loss` is its compiled `losses`."""

    def __init__(self, document: RunDocument, broadcast: Broadcast, loss: Callable[..., Any]):
        self.version = broadcast.version
        self._document = document
        self._params = document.decoded(broadcast.params)
        self._loss = loss
        self._samples = 0
        self._sums = 0.0, 0.0
        self._uncounted: list[tuple[Any, Any]] = []  # losses on the device, not yet in the sums

    def face(self, samples: Sample, count: int, t: Any, k: Any, results: Any) -> None:
        """Adds the first `count` samples, from step t on. The client's own loss is the first of `results`."""
        with self._document.precision():
            loss = self._loss(self._params, samples, np.int32(count), t, k)
        self._uncounted.append((results, loss))
        self._samples += count
        if len(self._uncounted) >= 1024:
            self.compared()

    def compared(self) -> Compared:
        """The comparison so far."""
        for results, loss in self._uncounted:
            self._sums = self._sums[0] + float(results[0]), self._sums[1] + float(loss)
        self._uncounted = []
        return Compared(self.version, self._samples, *self._sums)


def losses(document: RunDocument, key: Any) -> Callable[..., Any]:
    """The function that computes the loss of a model on the first `count` of `samples`, from step t on."""

    def loss(params: Any, samples: Sample, count: Any, t: Any, k: Any) -> Any:
        def one(sample: Sample, n: Any) -> Any:
            at = replay.at_one(key, random.DECIDE, t + n, k)
            return jnp.where(n < count, document.problem.face(params, sample, at).loss, 0)

        length = len(jax.tree.leaves(samples)[0])
        return jnp.sum(jax.vmap(one)(samples, jnp.arange(length, dtype=jnp.int32)))

    return loss
