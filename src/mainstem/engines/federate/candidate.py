"""A fixed model that a client compares itself with.

The hub never sees data, so it cannot know the best fixed model, nor the regret. But any fixed model loses at least
as much as the best one: by what the clients lose more than a candidate, their regret is at least as large.
"""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import random, replay
from mainstem.base import Sample
from mainstem.engines.federate.charter import Charter
from mainstem.engines.federate.wire import Broadcast


class Compared(NamedTuple):
    """What a client and a candidate lost on the same samples."""

    version: int  # of the candidate: how many merges are in it
    samples: int
    loss: float
    candidate: float


def read_compared(data: bytes) -> Compared:
    """What a client has sent of it; ValueError or TypeError if it makes no sense."""
    found = Compared(**json.loads(data))
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in found):
        raise ValueError("numbers are wanted")
    return found


def against(each: Sequence[Compared]) -> dict[str, float] | None:
    """The clients together against the newest candidate, and what their regret is at least."""
    if not each:
        return None
    version = max(compared.version for compared in each)
    counted = [compared for compared in each if compared.version == version]
    samples, loss, candidate = (sum(values) for values in list(zip(*counted, strict=True))[1:])
    regret = {"regret_at_least": loss - candidate}
    return {"version": version, "samples": samples, "loss": loss, "candidate": candidate} | regret


class Candidate:
    """The candidate at one client; `lost` are its `losses`, compiled."""

    def __init__(self, charter: Charter, said: Broadcast, lost: Callable[..., Any]):
        self.version = said.version
        self._charter = charter
        self._params = np.frombuffer(said.params, charter.dtype)
        self._lost = lost
        self._samples = 0
        self._sums = 0.0, 0.0
        self._told: list[tuple[Any, Any]] = []  # what is not yet in the sums

    def face(self, samples: Sample, count: int, t: Any, k: Any, told: Any) -> None:
        """The first `count` of `samples`, from step t on; the client's own loss is the first number `told`."""
        with self._charter.precise():
            lost = self._lost(self._params, samples, np.int32(count), t, k)
        self._told.append((told, lost))
        self._samples += count
        if len(self._told) >= 1024:
            self.compared()

    def compared(self) -> Compared:
        """How it stands."""
        for told, lost in self._told:
            self._sums = self._sums[0] + float(told[0]), self._sums[1] + float(lost)
        self._told = []
        return Compared(self.version, self._samples, *self._sums)


def losses(charter: Charter, key: Any) -> Callable[..., Any]:
    """What a model loses on the first `count` of `samples`, from step t on."""

    def lost(params: Any, samples: Sample, count: Any, t: Any, k: Any) -> Any:
        def one(sample: Sample, n: Any) -> Any:
            at = replay.at_one(key, random.DECIDE, t + n, k)
            return jnp.where(n < count, charter.problem.face(params, sample, at).loss, 0)

        length = len(jax.tree.leaves(samples)[0])
        return jnp.sum(jax.vmap(one)(samples, jnp.arange(length, dtype=jnp.int32)))

    return lost
