"""Other models on a client's samples: a candidate, and a model that the client learns alone."""

import abc
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check
from mainstem.algorithms import independent
from mainstem.base import Algorithm, Sample
from mainstem.engines.federate.client.kernels import Kernels
from mainstem.engines.federate.protocol.comparisons import AloneLosses, CandidateLosses
from mainstem.engines.federate.protocol.messages import MAX_LOSS, Broadcast
from mainstem.engines.federate.protocol.run_document import RunDocument
from mainstem.parts import euclidean
from mainstem.parts.step import as_step, automatic_steps

MOST_UNCOUNTED = 1024  # losses that stay on the device


class Comparing(abc.ABC):
    """Sums of losses: of the client, and of another model on the same samples."""

    def __init__(self) -> None:
        self._samples = 0
        self._sums = 0.0, 0.0
        self._uncounted: list[tuple[Any, Any]] = []  # losses on the device, not yet in the sums

    def face(self, samples: Sample, count: int, t: Any, k: Any, results: Any) -> None:
        """Adds the first `count` samples, from step t on. The client's own loss is the first of `results`."""
        self._uncounted.append((results, self._loss(samples, np.int32(count), t, k)))
        self._samples += count
        if len(self._uncounted) >= MOST_UNCOUNTED:
            self._count()

    @abc.abstractmethod
    def _loss(self, samples: Sample, count: Any, t: Any, k: Any) -> Any:
        """The other model's loss on the first `count` samples, from step t on: the first number of an array."""

    def _count(self) -> tuple[float, float]:
        """The sums, with all losses fetched from the device."""
        for results, loss in self._uncounted:
            both = float(results[0]), float(np.asarray(loss).flat[0])
            self._sums = self._sums[0] + both[0], self._sums[1] + both[1]
        self._uncounted = []
        return self._sums


class Candidate(Comparing):
    """A candidate at one client."""

    def __init__(self, kernels: Kernels, broadcast: Broadcast):
        super().__init__()
        self.version = broadcast.version
        self._document = kernels.document
        self._params = kernels.document.decoded(broadcast.params)
        self._losses = kernels.fixed_loss

    def _loss(self, samples: Sample, count: Any, t: Any, k: Any) -> Any:
        with self._document.precision():
            return self._losses(self._params, samples, count, t, k)

    def compared(self) -> CandidateLosses:
        """The comparison so far."""
        return CandidateLosses(self.version, self._samples, *self._count())


class Alone(Comparing):
    """A model that one client learns alone, by an algorithm that never syncs."""

    def __init__(self, kernels: Kernels, k: int):
        super().__init__()
        self._kernels = kernels
        with kernels.document.precision():
            self._client = kernels.initial(np.int32(k))

    def _loss(self, samples: Sample, count: Any, t: Any, k: Any) -> Any:
        with self._kernels.document.precision():
            self._client, results = self._kernels.learn_many(self._client, samples, count, t, k)
        return results

    def compared(self) -> AloneLosses | None:
        """The comparison so far; None if its losses are no longer finite."""
        sums = self._count()
        finite = all(math.isfinite(each) and abs(each) <= MAX_LOSS for each in sums)
        return AloneLosses(self._samples, *sums) if finite else None

    # --- storing -----------------------------------------------------------------------------------

    @property
    def _name(self) -> str:
        return repr(self._kernels.document.algorithm)

    def values(self) -> dict[str, Any]:
        """Its plain values, for a stored state."""
        return {"algorithm": self._name, "samples": self._samples, "sums": self._count()}

    def arrays(self) -> dict[str, Any]:
        """Its arrays, for a stored state."""
        leaves = jax.device_get(jax.tree.leaves(self._client))
        return {f"alone {n}": leaf for n, leaf in enumerate(leaves)}

    def restore(self, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Continues from what was stored, if that is of the same algorithm."""
        if values.get("algorithm") != self._name:
            return
        leaves, tree = jax.tree.flatten(self._client)
        kept = [arrays[f"alone {n}"] for n in range(len(leaves))]
        with self._kernels.document.precision():
            self._client = jax.tree.unflatten(tree, [jnp.asarray(each) for each in kept])
        self._samples, self._sums = values["samples"], tuple(values["sums"])


def learning_alone(document: RunDocument, step: Any) -> Algorithm:
    """The algorithm of a client that learns alone, with steps of this size, in the geometry of the run."""
    of = document.algorithm
    domain = document.source.domain if of.domain.whole else of.domain
    algorithm = independent(as_step("join", "alone", step), of.mirror or euclidean(domain))
    if automatic_steps(algorithm):
        raise check.refuse("join", "alone", "be a step size: a client has no data beforehand", step)
    return algorithm
