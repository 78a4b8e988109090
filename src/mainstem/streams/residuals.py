"""A world with shared and personal structure: each label is a shared function plus a client's own."""

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from mainstem import check, random
from mainstem.base import Drawn, Stream
from mainstem.problems.bandit import Rewards
from mainstem.random import Key
from mainstem.spec import recorded
from mainstem.streams.generated import generated


@recorded
def residuals(
    clients: int,
    shared: int,
    own: int,
    noise: float = 0.1,
    together: float = 1.0,
    apart: float = 1.0,
) -> Stream:
    r"""Linear tasks for `problems.personal(shared, own)`, drawn from the run's seed.

    :math:`y = u^g \cdot x^g + u_i \cdot x^l + e` with all features N(0, 1), e ~ N(0, noise^2), and
    random directions :math:`u^g, u_i` of length `together` and `apart`.

    >>> residuals(clients=5, shared=3, own=2).clients
    5
    """
    drawn, noise = _drawn("residuals", clients, shared, own, noise, together, apart)

    def sample(key: Key, t: Any, k: Any, truth: Drawn) -> Any:
        draws = random.normal(key, (shared + own + 1,))
        x, local = draws[:shared], draws[shared:-1]
        label = x @ truth.common + local @ truth.each + noise * draws[-1]
        return (x, local), label

    return generated(sample, clients, drawn=drawn)


@recorded
def linear_bandit(
    clients: int,
    actions: int,
    shared: int,
    own: int,
    noise: float = 0.1,
    together: float = 1.0,
    apart: float = 1.0,
) -> Stream:
    r"""Rewards for `problems.bandit(problems.personal(shared, own, intercept=True), actions, ...)`.

    Action a is worth :math:`1/2 + (u^g \cdot x^g(a) + u_i \cdot x^l(a)) / 4` in the mean, with contexts
    uniform in the cube of side 2 over the root of its dimension, so that it lies in [0, 1] for
    lengths `together` and `apart` of up to 1; the reward adds N(0, noise^2).

    >>> linear_bandit(clients=5, actions=4, shared=3, own=2).clients
    5
    """
    actions = check.integer("linear_bandit", "actions", actions, least=2)
    drawn, noise = _drawn("linear_bandit", clients, shared, own, noise, together, apart)

    def sample(key: Key, t: Any, k: Any, truth: Drawn) -> Any:
        draws = 2 * random.uniform(random.fold(key, 0), (actions, shared + own)) - 1
        x, local = draws[:, :shared] / math.sqrt(shared), draws[:, shared:] / math.sqrt(own)
        mean = 0.5 + 0.25 * (x @ truth.common + local @ truth.each)
        reward = mean + noise * random.normal(random.fold(key, 1), (actions,))
        return (x, local), Rewards(reward, jnp.asarray(mean))

    return generated(sample, clients, drawn=drawn)


def _drawn(
    owner: str, clients: int, shared: int, own: int, noise: float, together: float, apart: float
) -> tuple[Callable[[int], Drawn], float]:
    """(seed -> random directions, a shared one and one for each client; the noise), all checked."""
    clients = check.integer(owner, "clients", clients, least=1)
    shared = check.integer(owner, "shared", shared, least=1)
    own = check.integer(owner, "own", own, least=1)
    noise = check.at_least(owner, "noise", noise, 0)
    together = check.at_least(owner, "together", together, 0)
    apart = check.at_least(owner, "apart", apart, 0)

    def drawn(seed: int) -> Drawn:
        draw = np.random.default_rng([seed, 20])
        common, personal = draw.normal(size=shared), draw.normal(size=(clients, own))
        personal *= apart / np.linalg.norm(personal, axis=1, keepdims=True)
        return Drawn(common * together / np.linalg.norm(common), personal)

    return drawn, noise
