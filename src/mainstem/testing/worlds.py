"""Worlds: a small problem and a stream for every domain that an algorithm may have.

They draw uniform numbers where possible: a normal number needs a logarithm in float32, which XLA may round
differently in two programs that are compared to the last digit.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import problems, random, streams
from mainstem.base import Algorithm, At, Problem, Sample, Sampler, Stream
from mainstem.streams.split import Changed, Wrapped
from mainstem.value import leaf, part, value


class World(NamedTuple):
    """A problem and a stream for the test runs of an algorithm."""

    problem: Problem
    stream: Stream


@functools.cache
def classified(clients: int) -> World:
    """Nested parameters: a linear classifier of 300 random rows of 4 features in 3 classes.

    Its first model is random: with zeros, classes without samples so far are tied, and rounding would
    decide between them.
    """
    draw = np.random.default_rng(7)
    features = draw.normal(size=(300, 4))
    labels = np.argmax(features @ draw.normal(size=(4, 3)), axis=1).astype(np.int32)
    stream = streams.arrays(features, labels, clients)
    return World(problems.mlp(4, classes=3, hidden=(), ridge=0.01), stream)


def _targets(key: Any, t: Any, k: Any) -> Any:
    return (), 10 * random.uniform(key, (3,)) - 5


def targeted(clients: int, low: float, high: float) -> World:
    """Quadratic losses on a box; some targets are outside it."""
    problem = problems.quadratic(dimension=3, low=low, high=high)
    return World(problem, streams.generated(_targets, clients))


def _losses(key: Any, t: Any, k: Any) -> Any:
    return (), random.uniform(key, (4,))


def advised(clients: int) -> World:
    """Experts with random losses."""
    return World(problems.experts(4), streams.generated(_losses, clients))


def shared_and_own(clients: int) -> World:
    """A shared and an own part, an intercept for each, and steps in which a client gets no sample."""
    problem = problems.personal(3, 2, intercept=True, start=([0.1] * 4, [0.2] * 3))
    return World(problem, streams.sometimes(streams.residuals(clients, 3, 2), rate=0.8))


def in_batches(clients: int) -> World:
    """Batches of 12 samples with labels from a line that drifts."""
    problem = problems.batched(problems.logistic(2, ridge=2.0, intercept=False))
    return World(problem, streams.walking(clients, holds=12, drift=0.01))


def world_for(algorithm: Algorithm, clients: int) -> World:
    """A world in the domain of the algorithm, with an own part if the algorithm is personal."""
    if algorithm.personal:
        return shared_and_own(clients)
    if algorithm.domain.unit_sum:
        return advised(clients)
    if algorithm.domain.bounds is not None:
        return targeted(clients, *algorithm.domain.bounds)
    return classified(clients)


# --- worlds in which some clients are special -----------------------------------------------------


@value
class Shifted(Changed):
    """The samples of another sampler: the numbers of each client shifted, or no sample."""

    of: Sampler = leaf()
    shift: Any = leaf()  # [clients]
    sees: Any = leaf()  # [clients], truth values

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        usual = self.of.sample(piece, at, drawn)
        shift, sees = jnp.asarray(self.shift)[at.k], jnp.asarray(self.sees)[at.k]

        def shifted(x: Any) -> Any:
            if not jnp.issubdtype(jnp.asarray(x).dtype, jnp.floating):
                return x
            # Uneven: the same shift of all coordinates has no effect on a simplex.
            uneven = 1 + jnp.arange(x.size).reshape(x.shape) / x.size
            return x + (shift * uneven).astype(x.dtype)

        count = (self.of.batch or 1) if usual.count is None else usual.count
        shown, hidden = jax.tree.map(shifted, (usual.shown, usual.hidden))
        return Sample(shown, hidden, jnp.where(sees, count, 0).astype(jnp.int32))


@value
class altered(Wrapped):
    """`stream` with the numbers of client k shifted by `shift[k]`, and without samples for it unless `sees[k]`.

    Both are leaves: streams that differ only in them share one compiled program.
    """

    stream: Stream = part(Stream, "digits(clients=10)")
    shift: Any = leaf()
    sees: Any = leaf()

    @property
    def device(self) -> Sampler:
        return Shifted(self.stream.device, self.shift, self.sees)
