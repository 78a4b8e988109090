"""Participation: which clients are sampled at a sync. Drawn from the run's key, so any process can compute it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check, random
from mainstem.base import Participation, constant, of_client
from mainstem.random import Key
from mainstem.value import integer, leaf, rates, value


@value
class everyone(Participation):
    """All clients, always.

    >>> everyone().expected(clients=20)
    20.0
    """

    everyone = True
    chance = 1.0

    def heard(self, key: Key, t: Any, clients: int) -> jax.Array:
        return jnp.ones(clients, bool)


@value
class bernoulli(Participation):
    """Each client independently: one rate, or a rate for each client.

    >>> bernoulli([0.5, 1.0]).expected(clients=2)
    1.5
    """

    rate: Any = rates()

    @property
    def everyone(self) -> bool:
        return bool(np.all(np.asarray(self.rate) == 1))

    @property
    def chance(self) -> Any:
        return self.rate

    def heard(self, key: Key, t: Any, clients: int) -> jax.Array:
        draws = random.uniform(random.fold(key, random.PARTICIPATE, t), (clients,))
        return draws < constant(self.rate)

    def check(self, steps: int, clients: int) -> None:
        if np.ndim(self.rate) and np.size(self.rate) != clients:
            wanted = f"have one entry for each of {clients} clients"
            raise check.refuse("bernoulli", "rate", wanted, self.rate)

    def expected(self, clients: int) -> float:
        return clients * float(np.mean(self.rate))

    def weight(self, k: Any) -> Any:
        return of_client(1 / constant(self.rate), k)


@value
class exactly(Participation):
    """`count` clients, uniformly without replacement (Mitra et al. 2021, Section VII).

    >>> exactly(5).expected(clients=20)
    5.0
    """

    count: int = integer(least=1)

    apart = False

    def heard(self, key: Key, t: Any, clients: int) -> jax.Array:
        draws = random.bits(random.fold(key, random.PARTICIPATE, t), (clients,))
        return jnp.zeros(clients, bool).at[jnp.argsort(draws)[: self.count]].set(True)

    def check(self, steps: int, clients: int) -> None:
        if self.count > clients:
            raise check.refuse("exactly", "count", f"be at most the {clients} clients", self.count)

    def expected(self, clients: int) -> float:
        return float(self.count)

    def scale(self, clients: int) -> Any:
        return self.count


def _table(owner: str, name: str, trace: Any) -> np.ndarray:
    try:
        table = np.asarray(trace, dtype=bool)
    except ValueError:
        raise check.refuse(owner, name, "have rows of equal length", trace) from None
    if table.ndim != 2:
        raise check.refuse(owner, name, "be a table of steps by clients", f"shape {table.shape}")
    return table


@value
class given(Participation):
    """A recorded table: `trace[t - 1][k]` is whether client k participates at step t.

    The weight of a message is 1 / (the share of steps in the table at which its client participates).

    >>> given([[True, False], [True, True]]).expected(clients=2)
    1.5
    """

    trace: Any = leaf(checked=_table)

    def heard(self, key: Key, t: Any, clients: int) -> jax.Array:
        return jnp.asarray(self.trace)[t - 1]

    def check(self, steps: int, clients: int) -> None:
        if self.trace.shape[0] < steps or self.trace.shape[1] != clients:
            wanted = f"cover {steps} steps of {clients} clients"
            raise check.refuse("given", "trace", wanted, f"shape {self.trace.shape}")

    def expected(self, clients: int) -> float:
        return float(np.mean(np.sum(self.trace, axis=1)))

    def weight(self, k: Any) -> Any:
        share = jnp.mean(jnp.asarray(self.trace), axis=0, dtype=jnp.result_type(float))[k]
        return 1 / jnp.where(share > 0, share, 1)
