"""What one side remembers of the losses so far, and the model that would have been best on them.

A side is the server or a client; its partners are those on the other side (the server has K, a
client one). The loss of a sample that was `told` (a vector) is `loss(mine, partner's, told)`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mainstem.base import Params
from mainstem.parts import ball

Loss = Callable[[Params, Params, Any], Any]


class Recall(NamedTuple):
    """A memory: `add` takes many samples at once, each of a partner `who`, and counts the `real` ones."""

    empty: Callable[[int, int, int, int, Any], Any]  # (mine, partner, told, partners, dtype)
    add: Callable[[Loss, Any, Any, Any, Any], Any]  # (loss, memory, told[n], who[n], real[n])
    best: Callable[[Loss, Any, Any, Params], Params]  # (loss, memory, partners' models, current)


class Sums(NamedTuple):
    """Quadratic losses, summed up: flat in the number of samples."""

    matrix: Any  # [mine, mine]
    vector: Any  # [mine]
    cross: Any  # [partners, mine, partner]


def sums(radius: float | None) -> Recall:
    """For quadratic losses: sufficient statistics, and the minimum in closed form."""

    def empty(mine: int, partner: int, told: int, partners: int, dtype: Any) -> Sums:
        return Sums(
            jnp.zeros((mine, mine), dtype),
            jnp.zeros(mine, dtype),
            jnp.zeros((partners, mine, partner), dtype),
        )

    def add(loss: Loss, memory: Sums, told: Any, who: Any, real: Any) -> Sums:
        mine, partner = jnp.zeros_like(memory.vector), jnp.zeros_like(memory.cross[0, 0])

        def one(told: Any, real: Any) -> Sums:
            slope = jax.grad(loss)
            matrix = jax.jacfwd(slope)(mine, partner, told)
            cross = jax.jacfwd(slope, argnums=1)(mine, partner, told)
            parts = matrix, -slope(mine, partner, told), cross
            return Sums(*(jnp.where(real, part, 0) for part in parts))

        new = jax.vmap(one)(told, real)
        return Sums(
            memory.matrix + jnp.sum(new.matrix, axis=0),
            memory.vector + jnp.sum(new.vector, axis=0),
            memory.cross.at[who].add(new.cross),
        )

    def best(loss: Loss, memory: Sums, partners: Any, current: Params) -> Params:
        vector = memory.vector - jnp.einsum("pmq,pq->m", memory.cross, partners)
        return ball.quadratic(memory.matrix, vector, current, radius)

    return Recall(empty, add, best)


class Samples(NamedTuple):
    """The samples themselves."""

    told: Any  # [partners, room, told]
    count: Any  # [partners]


def samples(radius: float, room: int) -> Recall:
    """For any convex loss: up to `room` samples of each partner are kept, and the minimum certified.

    Its memory is not flat in the number of steps.
    """

    def empty(mine: int, partner: int, told: int, partners: int, dtype: Any) -> Samples:
        return Samples(jnp.zeros((partners, room, told), dtype), jnp.zeros(partners, jnp.int32))

    def add(loss: Loss, memory: Samples, told: Any, who: Any, real: Any) -> Samples:
        same = (who[:, None] == who[None, :]) & real[None, :]
        before = jnp.sum(jnp.tril(same, -1), axis=1, dtype=jnp.int32)  # several of one partner
        place = jnp.where(real, memory.count[who] + before, room)
        return Samples(
            memory.told.at[who, place].set(told, mode="drop"),
            memory.count.at[who].add(real.astype(jnp.int32)),
        )

    def best(loss: Loss, memory: Samples, partners: Any, current: Params) -> Params:
        real = jnp.arange(room) < memory.count[:, None]
        counted = jnp.maximum(jnp.sum(real), 1)

        def mean(mine: Params) -> Any:
            each = jax.vmap(jax.vmap(loss, (None, None, 0)), (None, 0, 0))
            losses = each(mine, partners, memory.told)
            return jnp.sum(jnp.where(real, losses, 0)) / counted

        found = ball.minimise(mean, current, radius).params
        return jnp.where(jnp.any(real), found, current)

    return Recall(empty, add, best)
