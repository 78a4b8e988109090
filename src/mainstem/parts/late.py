"""Late gradients: own gradients that wait until a broadcast contains the message of the same step."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mainstem.base import Params


class Late(NamedTuple):
    """A buffer with one place for each message that can be in flight at once."""

    slopes: Any  # [places, size]
    when: Any  # [places], the step at which its message was sent; 0: empty


def nothing(places: int, like: Params) -> Late:
    """An empty buffer."""
    return Late(jnp.zeros((places, like.size), like.dtype), jnp.zeros(places, jnp.int32))


def put(late: Late, slope: Params, t: Any, whether: Any) -> Late:
    """Stores `slope` in the oldest place, if `whether`; a gradient that is still there was never merged."""
    oldest = jnp.arange(late.when.size) == jnp.argmin(late.when)
    place = oldest & whether
    return Late(jnp.where(place[:, None], slope, late.slopes), jnp.where(place, t, late.when))


def due(late: Late, merged: Any) -> Any:
    """Which gradients are due: their message was sent at or before the step `merged`."""
    return (late.when > 0) & (late.when <= merged)


def taken(late: Late, merged: Any, state: Any, step: Callable[..., Any]) -> tuple[Late, Any]:
    """Applies `step(state, slope, whether)` to each due gradient, oldest first. The rest, and the state."""

    def waiting(held: Any) -> Any:
        return jnp.any(due(held[0], merged))

    def next_one(held: Any) -> Any:
        late, state = held
        slope, rest = _first(late, merged)
        return rest, step(state, slope, waiting(held))

    if late.when.size == 1:  # at most one can be due
        return next_one((late, state))
    return jax.lax.while_loop(waiting, next_one, (late, state))


def _first(late: Late, merged: Any) -> tuple[Params, Late]:
    """The oldest due gradient (zero if none is due), and the rest."""
    waiting = due(late, merged)
    when = jnp.min(jnp.where(waiting, late.when, jnp.iinfo(jnp.int32).max))
    mine = waiting & (late.when == when)
    slope = jnp.sum(jnp.where(mine[:, None], late.slopes, 0), axis=0)
    return slope, late._replace(when=jnp.where(mine, 0, late.when))
