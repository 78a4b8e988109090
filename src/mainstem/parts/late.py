"""Gradients that wait until the message they went with has come back."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mainstem.base import Params


class Late(NamedTuple):
    """As many places as messages can be on their way at once."""

    slopes: Any  # [places, size]
    when: Any  # [places], the step each was sent; 0: empty


def nothing(places: int, like: Params) -> Late:
    """All places empty."""
    return Late(jnp.zeros((places, like.size), like.dtype), jnp.zeros(places, jnp.int32))


def put(late: Late, slope: Params, t: Any, whether: Any) -> Late:
    """`slope` into the oldest place, if `whether`: what is still there was never heard."""
    oldest = jnp.arange(late.when.size) == jnp.argmin(late.when)
    place = oldest & whether
    return Late(jnp.where(place[:, None], slope, late.slopes), jnp.where(place, t, late.when))


def due(late: Late, merged: Any) -> Any:
    """Which were sent at or before the step `merged`."""
    return (late.when > 0) & (late.when <= merged)


def taken(late: Late, merged: Any, state: Any, step: Callable[..., Any]) -> tuple[Late, Any]:
    """`step(state, slope, when, whether)` for each that is due, the oldest first; and the rest."""

    def waiting(held: Any) -> Any:
        return jnp.any(due(held[0], merged))

    def next_one(held: Any) -> Any:
        late, state = held
        slope, when, rest = _first(late, merged)
        return rest, step(state, slope, when, waiting(held))

    if late.when.size == 1:  # at most one can be due
        return next_one((late, state))
    return jax.lax.while_loop(waiting, next_one, (late, state))


def _first(late: Late, merged: Any) -> tuple[Params, Any, Late]:
    """The first of those that are due (zero if none is), when it was sent, and the rest."""
    waiting = due(late, merged)
    when = jnp.min(jnp.where(waiting, late.when, jnp.iinfo(jnp.int32).max))
    mine = waiting & (late.when == when)
    slope = jnp.sum(jnp.where(mine[:, None], late.slopes, 0), axis=0)
    return slope, when, late._replace(when=jnp.where(mine, 0, late.when))
