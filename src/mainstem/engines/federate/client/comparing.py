"""Other models on a client's samples: a candidate, and a model that the client learns alone."""

import abc
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
from mainstem.engines.federate.protocol.messages import Broadcast
from mainstem.engines.federate.protocol.run_document import RunDocument
from mainstem.parts import euclidean
from mainstem.parts.step import as_step, automatic_steps
from mainstem.spec import digest, plain, unnamed

MAX_UNCOUNTED = 1024  # calls after which losses are fetched from the device
MOST = 1e80  # a larger loss counts as one that is not finite: a sum of them could not be sent


class Comparing(abc.ABC):
    """Sums of losses: of the client, and of another model on the same samples."""

    def __init__(self) -> None:
        self._samples = 0
        self._sums = 0.0, 0.0
        self._uncounted: list[tuple[int, Any, Any]] = []  # losses on the device, not in the sums
        self._failed = False  # whether a loss of the other model was not finite

    def face(self, samples: Sample, count: int, t: Any, k: Any, results: Any) -> None:
        """Adds the first `count` samples, from step t on. The client's own loss is the first of `results`."""
        self._uncounted.append((count, results, self._loss(samples, np.int32(count), t, k)))
        if len(self._uncounted) >= MAX_UNCOUNTED:
            self._count()

    @abc.abstractmethod
    def _loss(self, samples: Sample, count: Any, t: Any, k: Any) -> Any:
        """The other model's loss on the first `count` samples, from step t on: the first number of an array."""

    def _count(self) -> None:
        """Fetches the losses from the device. Samples count where both losses are finite."""
        for count, results, loss in self._uncounted:
            own, other = float(results[0]), float(np.asarray(loss).flat[0])
            if abs(own) <= MOST and abs(other) <= MOST:
                self._samples += count
                self._sums = self._sums[0] + own, self._sums[1] + other
            elif not abs(other) <= MOST:
                self._failed = True
        self._uncounted = []


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
        self._count()
        return CandidateLosses(self.version, self._samples, *self._sums)


class Alone(Comparing):
    """A model that one client learns alone, by an algorithm that never syncs."""

    def __init__(self, kernels: Kernels, k: int):
        super().__init__()
        self._kernels, self._k = kernels, np.int32(k)
        self.restarts = 0  # because its loss was not finite
        self._begin()
        spec = plain(kernels.document.algorithm)
        self._name = "" if unnamed(spec) is not None else digest(spec)  # "": code without a name

    def _begin(self) -> None:
        with self._kernels.document.precision():
            self._client = self._kernels.initial(self._k)

    def _loss(self, samples: Sample, count: Any, t: Any, k: Any) -> Any:
        with self._kernels.document.precision():
            self._client, results = self._kernels.learn_many(self._client, samples, count, t, k)
        return results

    def compared(self) -> AloneLosses:
        """The comparison so far. If a loss was not finite, the model begins anew."""
        self._count()
        if self._failed:
            self._failed = False
            self.restarts += 1
            self._begin()
        return AloneLosses(self._samples, *self._sums)

    # --- storing -----------------------------------------------------------------------------------

    def values(self) -> dict[str, Any]:
        """Its plain values, for a stored state."""
        samples, *sums = self.compared()
        return {"algorithm": self._name, "samples": samples, "sums": sums}

    def arrays(self) -> dict[str, Any]:
        """Its arrays, for a stored state."""
        leaves = jax.device_get(jax.tree.leaves(self._client))
        return {f"alone {n}": leaf for n, leaf in enumerate(leaves)}

    def restore(self, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bool:
        """Continues from what was stored; returns False if that is of another algorithm."""
        if not self._name or values["algorithm"] != self._name:
            return False
        leaves, tree = jax.tree.flatten(self._client)
        kept = [arrays[f"alone {n}"] for n in range(len(leaves))]
        with self._kernels.document.precision():
            self._client = jax.tree.unflatten(tree, [jnp.asarray(each) for each in kept])
        self._samples, self._sums = values["samples"], tuple(values["sums"])
        return True


def learning_alone(document: RunDocument, step: Any) -> Algorithm:
    """The algorithm of a client that learns alone, with steps of this size, in the geometry of the run."""
    of = document.algorithm
    if of.personal and not of.domain.whole:
        wanted = "be left out: of this algorithm each part of the model has a domain of its own"
        raise check.refuse("join", "alone", wanted, step)
    algorithm = independent(as_step("join", "alone", step), of.mirror or euclidean(of.domain))
    if automatic_steps(algorithm):
        raise check.refuse("join", "alone", "be a step size: a client has no data beforehand", step)
    return algorithm
