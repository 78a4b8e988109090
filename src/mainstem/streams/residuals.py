"""Synthetic streams with shared and personal structure: a label is a shared function plus a client's own."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from mainstem import random
from mainstem.base import At, Drawn, Sample, Stream, constant
from mainstem.problems.bandit import Rewards
from mainstem.value import at_least, integer, value


class Directions(Stream):
    """Random directions: a shared one of length `shared_norm`, and one per client of length `own_norm`."""

    shared: int
    own: int
    noise: float
    shared_norm: float
    own_norm: float

    def drawn(self, seed: int) -> Drawn:
        draw = np.random.default_rng([seed, 20])
        common, personal = draw.normal(size=self.shared), draw.normal(size=(self.clients, self.own))
        personal *= self.own_norm / np.linalg.norm(personal, axis=1, keepdims=True)
        return Drawn(common * self.shared_norm / np.linalg.norm(common), personal)


@value
class residuals(Directions):
    r"""Linear tasks for `problems.personal(shared, own)`, drawn from the run's seed.

    :math:`y = u^g \cdot x^g + u_i \cdot x^l + e` with all features N(0, 1), e ~ N(0, noise^2), and
    random directions :math:`u^g, u_i` of length `shared_norm` and `own_norm`.

    >>> residuals(clients=5, shared=3, own=2).clients
    5
    """

    clients: int = integer(least=1)
    shared: int = integer(least=1)
    own: int = integer(least=1)
    noise: float = at_least(0, default=0.1)
    shared_norm: float = at_least(0, default=1.0)
    own_norm: float = at_least(0, default=1.0)

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        draws = random.normal(at.key, (self.shared + self.own + 1,))
        x, local = draws[: self.shared], draws[self.shared : -1]
        label = x @ drawn.common + local @ drawn.each + constant(self.noise) * draws[-1]
        return Sample((x, local), label)


@value
class linear_bandit(Directions):
    r"""Rewards for `problems.bandit(problems.personal(shared, own, intercept=True), actions, ...)`.

    The mean reward of action a is :math:`1/2 + (u^g \cdot x^g(a) + u_i \cdot x^l(a)) / 4`. Contexts are
    uniform in the cube of side 2 / sqrt(dimension), so the mean lies in [0, 1] if `shared_norm` and
    `own_norm` are at most 1. The reward is the mean plus N(0, noise^2).

    >>> linear_bandit(clients=5, actions=4, shared=3, own=2).clients
    5
    """

    clients: int = integer(least=1)
    actions: int = integer(least=2)
    shared: int = integer(least=1)
    own: int = integer(least=1)
    noise: float = at_least(0, default=0.1)
    shared_norm: float = at_least(0, default=1.0)
    own_norm: float = at_least(0, default=1.0)

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        size = self.actions, self.shared + self.own
        draws = 2 * random.uniform(random.fold(at.key, 0), size) - 1
        x = draws[:, : self.shared] / math.sqrt(self.shared)
        local = draws[:, self.shared :] / math.sqrt(self.own)
        mean = 0.5 + 0.25 * (x @ drawn.common + local @ drawn.each)
        errors = random.normal(random.fold(at.key, 1), (self.actions,))
        reward = mean + constant(self.noise) * errors
        return Sample((x, local), Rewards(reward, jnp.asarray(mean)))
