"""What one side remembers of the losses so far, and the model that would have been best on them.

A side is the server or a client; its partners are those on the other side (the server has K, a
client one). The loss of a sample that was `told` (a vector) is `loss(mine, partner's, told)`.
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
    """How many numbers there are in one's own model, in a partner's, and in what is told of a sample."""

    mine: int
    partner: int
    told: int


class Recall(Value):
    """A memory of samples."""

    @abc.abstractmethod
    def empty(self, shapes: Shapes, partners: int, dtype: Any) -> Any:
        """A memory of nothing."""

    @abc.abstractmethod
    def add(self, loss: Loss, memory: Any, told: Any, who: Any, real: Any) -> Any:
        """The memory with many samples more, each of a partner `who`; only the `real` ones count."""

    @abc.abstractmethod
    def best(self, loss: Loss, memory: Any, partners: Any, current: Params) -> Params:
        """The model that would have been best, beside the partners' models."""


class Moments(NamedTuple):
    """Quadratic losses, summed up: flat in the number of samples."""

    matrix: Any  # [mine, mine]
    vector: Any  # [mine]
    cross: Any  # [partners, mine, partner]


@value
class Sums(Recall):
    """For quadratic losses: sufficient statistics, and the minimum in closed form."""

    radius: float | None = positive(default=None)

    def empty(self, shapes: Shapes, partners: int, dtype: Any) -> Moments:
        return Moments(
            jnp.zeros((shapes.mine, shapes.mine), dtype),
            jnp.zeros(shapes.mine, dtype),
            jnp.zeros((partners, shapes.mine, shapes.partner), dtype),
        )

    def add(self, loss: Loss, memory: Moments, told: Any, who: Any, real: Any) -> Moments:
        mine, partner = jnp.zeros_like(memory.vector), jnp.zeros_like(memory.cross[0, 0])

        def one(told: Any, real: Any) -> Moments:
            slope = jax.grad(loss)
            matrix = jax.jacfwd(slope)(mine, partner, told)
            cross = jax.jacfwd(slope, argnums=1)(mine, partner, told)
            parts = matrix, -slope(mine, partner, told), cross
            return Moments(*(jnp.where(real, part, 0) for part in parts))

        new = jax.vmap(one)(told, real)
        return Moments(
            memory.matrix + jnp.sum(new.matrix, axis=0),
            memory.vector + jnp.sum(new.vector, axis=0),
            memory.cross.at[who].add(new.cross),
        )

    def best(self, loss: Loss, memory: Moments, partners: Any, current: Params) -> Params:
        vector = memory.vector - jnp.einsum("pmq,pq->m", memory.cross, partners)
        return ball.quadratic(memory.matrix, vector, current, self.radius)


class Kept(NamedTuple):
    """The samples themselves."""

    told: Any  # [partners, room, told]
    count: Any  # [partners]


@value
class Samples(Recall):
    """For any convex loss: up to `room` samples of each partner are kept, and the minimum certified.

    Its memory is not flat in the number of steps.
    """

    radius: float = positive()
    room: int = integer(least=1)

    def empty(self, shapes: Shapes, partners: int, dtype: Any) -> Kept:
        told = jnp.zeros((partners, self.room, shapes.told), dtype)
        return Kept(told, jnp.zeros(partners, jnp.int32))

    def add(self, loss: Loss, memory: Kept, told: Any, who: Any, real: Any) -> Kept:
        same = (who[:, None] == who[None, :]) & real[None, :]
        before = jnp.sum(jnp.tril(same, -1), axis=1, dtype=jnp.int32)  # several of one partner
        place = jnp.where(real, memory.count[who] + before, self.room)
        return Kept(
            memory.told.at[who, place].set(told, mode="drop"),
            memory.count.at[who].add(real.astype(jnp.int32)),
        )

    def best(self, loss: Loss, memory: Kept, partners: Any, current: Params) -> Params:
        real = jnp.arange(self.room) < memory.count[:, None]
        counted = jnp.maximum(jnp.sum(real), 1)

        def mean(mine: Params) -> Any:
            each = jax.vmap(jax.vmap(loss, (None, None, 0)), (None, 0, 0))
            losses = each(mine, partners, memory.told)
            return jnp.sum(jnp.where(real, losses, 0)) / counted

        found = ball.minimise(mean, current, self.radius).params
        return jnp.where(jnp.any(real), found, current)
