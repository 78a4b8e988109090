"""Participation: who is heard at a sync. Drawn from the run's key, so any process can know it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check, random
from mainstem.base import Participation, constant
from mainstem.random import Key
from mainstem.spec import recorded


def _any(steps: int, clients: int) -> None:
    """Fits every run."""


@recorded
def everyone() -> Participation:
    """All clients, always."""
    return Participation(lambda key, t, clients: jnp.ones(clients, bool), _any, everyone=True)


@recorded
def bernoulli(rate: Any) -> Participation:
    """Each client by a coin of its own: one rate, or a rate for each client."""
    chance = check.rates("bernoulli", "rate", rate)

    def heard(key: Key, t: Any, clients: int) -> jax.Array:
        draws = random.uniform(random.fold(key, random.PARTICIPATE, t), (clients,))
        return draws < constant(chance)

    def fits(steps: int, clients: int) -> None:
        if chance.ndim and chance.size != clients:
            raise check.refuse(
                "bernoulli", "rate", f"have one entry for each of {clients} clients", rate
            )

    return Participation(heard, fits, everyone=bool(np.all(chance == 1)))


@recorded
def exactly(count: int) -> Participation:
    """`count` clients, uniformly without replacement (Mitra et al. 2021, Section VII)."""
    count = check.integer("exactly", "count", count, least=1)

    def heard(key: Key, t: Any, clients: int) -> jax.Array:
        draws = random.bits(random.fold(key, random.PARTICIPATE, t), (clients,))
        return jnp.zeros(clients, bool).at[jnp.argsort(draws)[:count]].set(True)

    def fits(steps: int, clients: int) -> None:
        if count > clients:
            raise check.refuse("exactly", "count", f"be at most the {clients} clients", count)

    return Participation(heard, fits)


@recorded
def given(trace: Any) -> Participation:
    """A recorded trace: `trace[t - 1][k]` says whether client k is heard at step t."""
    try:
        table = np.asarray(trace, dtype=bool)
    except ValueError:
        raise check.refuse("given", "trace", "have rows of equal length", trace) from None
    if table.ndim != 2:
        raise check.refuse(
            "given", "trace", "be a table of steps by clients", f"shape {table.shape}"
        )

    def fits(steps: int, clients: int) -> None:
        if table.shape[0] < steps or table.shape[1] != clients:
            wanted = f"cover {steps} steps of {clients} clients"
            raise check.refuse("given", "trace", wanted, f"shape {table.shape}")

    return Participation(lambda key, t, clients: jnp.asarray(table)[t - 1], fits)
