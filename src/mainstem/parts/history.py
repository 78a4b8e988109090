"""History: the losses that one side has seen so far, and the best model for them.

A side is the server or a client; its partners are those on the other side (the server has K, a
client one). A sample is stored as a vector, its `summary`, which ends with the label.
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mainstem.base import Params
from mainstem.parts import ball
from mainstem.value import Value, integer, positive, value


class Loss(NamedTuple):
    """The loss of a sample: the penalty of a score that is linear in one's own model and the partner's."""

    score: Callable[[Params, Params, Any], Any]  # (mine, partner's, summary) -> score
    penalty: Callable[[Any, Any], Any]  # (score, label) -> loss

    def value(self, mine: Params, partner: Params, summary: Any) -> Any:
        """The loss of one's own model on a sample, given the partner's."""
        return self.penalty(self.score(mine, partner, summary), summary[-1])


class Shapes(NamedTuple):
    """The sizes of one's own model, of a partner's model, and of a sample's summary."""

    mine: int
    partner: int
    summary: int


class History(Value):
    """A store of samples, or of what the best model needs of them."""

    @abc.abstractmethod
    def empty(self, shapes: Shapes, partners: int, dtype: Any) -> Any:
        """The memory before the first sample."""

    @abc.abstractmethod
    def add(self, loss: Loss, memory: Any, summary: Any, who: Any, real: Any) -> Any:
        """The memory with more samples, each of a partner `who`. Samples that are not `real` do not count."""

    @abc.abstractmethod
    def best(self, loss: Loss, memory: Any, partners: Any, current: Params) -> Params:
        """The best model for all stored samples, given the partners' models."""


class Triangle(NamedTuple):
    """A least-squares problem in its smallest form: |matrix mine + sum of cross partner - vector|.

    Its size does not grow with the number of samples.
    """

    matrix: Any  # [mine, mine], triangular
    cross: Any  # [partners, mine, partner]
    vector: Any  # [mine]


@value
class Squares(History):
    """For squared losses: a triangular factor to which samples are added by QR, and the minimum in closed form.

    Sums of x x' would be cheaper, but have half the digits: in float32, three or four.
    """

    radius: float | None = positive(default=None)

    def empty(self, shapes: Shapes, partners: int, dtype: Any) -> Triangle:
        return Triangle(
            jnp.zeros((shapes.mine, shapes.mine), dtype),
            jnp.zeros((partners, shapes.mine, shapes.partner), dtype),
            jnp.zeros(shapes.mine, dtype),
        )

    def add(self, loss: Loss, memory: Triangle, summary: Any, who: Any, real: Any) -> Triangle:
        mine, partner = jnp.zeros_like(memory.vector), jnp.zeros_like(memory.cross[0, 0])

        def row(summary: Any, real: Any) -> tuple[Any, Any, Any]:
            score, label = loss.score(mine, partner, summary), summary[-1]
            slope = jax.grad(loss.penalty)
            scale = jnp.sqrt(jax.grad(slope)(score, label))
            ours, theirs = jax.grad(loss.score, argnums=(0, 1))(mine, partner, summary)
            parts = scale * ours, scale * theirs, -slope(score, label) / scale
            return jax.tree.map(lambda part: jnp.where(real, part, 0), parts)

        size = mine.size
        ours, theirs, targets = jax.vmap(row)(summary, real)
        basis, matrix = jnp.linalg.qr(jnp.concatenate([memory.matrix, ours]))
        old, new = basis[:size], basis[size:]
        cross = jnp.einsum("mn,pmq->pnq", old, memory.cross)
        return Triangle(
            matrix,
            cross.at[who].add(new[:, :, None] * theirs[:, None, :]),
            old.T @ memory.vector + new.T @ targets,
        )

    def best(self, loss: Loss, memory: Triangle, partners: Any, current: Params) -> Params:
        targets = memory.vector - jnp.einsum("pmq,pq->m", memory.cross, partners)
        return ball.least_squares(memory.matrix, targets, current, self.radius)


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
            each = jax.vmap(jax.vmap(loss.value, (None, None, 0)), (None, 0, 0))
            losses = each(mine, partners, memory.summaries)
            return jnp.sum(jnp.where(real, losses, 0)) / counted

        found = ball.minimise(mean, current, self.radius).params
        return jnp.where(jnp.any(real), found, current)
