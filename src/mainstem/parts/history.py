"""History: the losses that one side has seen so far, and the best model for them.

A side is the server or a client; its partners are those on the other side (the server has K, a
client one). A sample is stored as a vector, its `summary`; its loss is `loss(mine, partner's, summary)`.
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mainstem.base import Params
from mainstem.parts import ball
from mainstem.value import Value, integer, positive, value

Loss = Callable[[Params, Params, Any], Any]


class Shapes(NamedTuple):
    """The sizes of one's own model, of a partner's model, and of a sample's summary."""

    mine: int
    partner: int
    summary: int


class History(Value):
    """A store of samples, or of their sums."""

    @abc.abstractmethod
    def empty(self, shapes: Shapes, partners: int, dtype: Any) -> Any:
        """The memory before the first sample."""

    @abc.abstractmethod
    def add(self, loss: Loss, memory: Any, summary: Any, who: Any, real: Any) -> Any:
        """The memory with more samples, each of a partner `who`. Samples that are not `real` do not count."""

    @abc.abstractmethod
    def best(self, loss: Loss, memory: Any, partners: Any, current: Params) -> Params:
        """The best model for all stored samples, given the partners' models."""


class Moments(NamedTuple):
    """Sums of quadratic losses. Their size does not grow with the number of samples."""

    matrix: Any  # [mine, mine]
    vector: Any  # [mine]
    cross: Any  # [partners, mine, partner]


@value
class Sums(History):
    """For quadratic losses: sufficient statistics, and the minimum in closed form."""

    radius: float | None = positive(default=None)

    def empty(self, shapes: Shapes, partners: int, dtype: Any) -> Moments:
        return Moments(
            jnp.zeros((shapes.mine, shapes.mine), dtype),
            jnp.zeros(shapes.mine, dtype),
            jnp.zeros((partners, shapes.mine, shapes.partner), dtype),
        )

    def add(self, loss: Loss, memory: Moments, summary: Any, who: Any, real: Any) -> Moments:
        mine, partner = jnp.zeros_like(memory.vector), jnp.zeros_like(memory.cross[0, 0])

        def one(summary: Any, real: Any) -> Moments:
            slope = jax.grad(loss)
            matrix = jax.jacfwd(slope)(mine, partner, summary)
            cross = jax.jacfwd(slope, argnums=1)(mine, partner, summary)
            parts = matrix, -slope(mine, partner, summary), cross
            return Moments(*(jnp.where(real, part, 0) for part in parts))

        new = jax.vmap(one)(summary, real)
        return Moments(
            memory.matrix + jnp.sum(new.matrix, axis=0),
            memory.vector + jnp.sum(new.vector, axis=0),
            memory.cross.at[who].add(new.cross),
        )

    def best(self, loss: Loss, memory: Moments, partners: Any, current: Params) -> Params:
        vector = memory.vector - jnp.einsum("pmq,pq->m", memory.cross, partners)
        return ball.quadratic(memory.matrix, vector, current, self.radius)


class StoredSamples(NamedTuple):
    """The samples themselves."""

    summaries: Any  # [partners, capacity, summary]
    count: Any  # [partners]


@value
class Samples(History):
    """For any convex loss: up to `capacity` samples of each partner are stored, and the minimum is certified.

    Its memory grows with the number of steps.
    """

    radius: float = positive()
    capacity: int = integer(least=1)

    def empty(self, shapes: Shapes, partners: int, dtype: Any) -> StoredSamples:
        summaries = jnp.zeros((partners, self.capacity, shapes.summary), dtype)
        return StoredSamples(summaries, jnp.zeros(partners, jnp.int32))

    def add(
        self, loss: Loss, memory: StoredSamples, summary: Any, who: Any, real: Any
    ) -> StoredSamples:
        same = (who[:, None] == who[None, :]) & real[None, :]
        before = jnp.sum(jnp.tril(same, -1), axis=1, dtype=jnp.int32)  # several of one partner
        place = jnp.where(real, memory.count[who] + before, self.capacity)
        return StoredSamples(
            memory.summaries.at[who, place].set(summary, mode="drop"),
            memory.count.at[who].add(real.astype(jnp.int32)),
        )

    def best(self, loss: Loss, memory: StoredSamples, partners: Any, current: Params) -> Params:
        real = jnp.arange(self.capacity) < memory.count[:, None]
        counted = jnp.maximum(jnp.sum(real), 1)

        def mean(mine: Params) -> Any:
            each = jax.vmap(jax.vmap(loss, (None, None, 0)), (None, 0, 0))
            losses = each(mine, partners, memory.summaries)
            return jnp.sum(jnp.where(real, losses, 0)) / counted

        found = ball.minimise(mean, current, self.radius).params
        return jnp.where(jnp.any(real), found, current)
