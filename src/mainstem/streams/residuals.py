"""A world with shared and personal structure: each label is a shared function plus a client's own."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from mainstem import random
from mainstem.base import At, Drawn, Sample, Stream, constant
from mainstem.problems.bandit import Rewards
from mainstem.value import at_least, integer, value


class Directions(Stream):
    """A world of random directions: a shared one of length `together`, one of length `apart` for each client."""

    shared: int
    own: int
    noise: float
    together: float
    apart: float

    def drawn(self, seed: int) -> Drawn:
        draw = np.random.default_rng([seed, 20])
        common, personal = draw.normal(size=self.shared), draw.normal(size=(self.clients, self.own))
        personal *= self.apart / np.linalg.norm(personal, axis=1, keepdims=True)
        return Drawn(common * self.together / np.linalg.norm(common), personal)


@value
class residuals(Directions):
    r"""Linear tasks for `problems.personal(shared, own)`, drawn from the run's seed.

    :math:`y = u^g \cdot x^g + u_i \cdot x^l + e` with all features N(0, 1), e ~ N(0, noise^2), and
    random directions :math:`u^g, u_i` of length `together` and `apart`.

    >>> residuals(clients=5, shared=3, own=2).clients
    5
    """

    clients: int = integer(least=1)
    shared: int = integer(least=1)
    own: int = integer(least=1)
    noise: float = at_least(0, default=0.1)
    together: float = at_least(0, default=1.0)
    apart: float = at_least(0, default=1.0)

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        draws = random.normal(at.key, (self.shared + self.own + 1,))
        x, local = draws[: self.shared], draws[self.shared : -1]
        label = x @ drawn.common + local @ drawn.each + constant(self.noise) * draws[-1]
        return Sample((x, local), label)


@value
class linear_bandit(Directions):
    r"""Rewards for `problems.bandit(problems.personal(shared, own, intercept=True), actions, ...)`.

    Action a is worth :math:`1/2 + (u^g \cdot x^g(a) + u_i \cdot x^l(a)) / 4` in the mean, with contexts
    uniform in the cube of side 2 over the root of its dimension, so that it lies in [0, 1] for
    lengths `together` and `apart` of up to 1; the reward adds N(0, noise^2).

    >>> linear_bandit(clients=5, actions=4, shared=3, own=2).clients
    5
    """

    clients: int = integer(least=1)
    actions: int = integer(least=2)
    shared: int = integer(least=1)
    own: int = integer(least=1)
    noise: float = at_least(0, default=0.1)
    together: float = at_least(0, default=1.0)
    apart: float = at_least(0, default=1.0)

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        size = self.actions, self.shared + self.own
        draws = 2 * random.uniform(random.fold(at.key, 0), size) - 1
        x = draws[:, : self.shared] / math.sqrt(self.shared)
        local = draws[:, self.shared :] / math.sqrt(self.own)
        mean = 0.5 + 0.25 * (x @ drawn.common + local @ drawn.each)
        errors = random.normal(random.fold(at.key, 1), (self.actions,))
        reward = mean + constant(self.noise) * errors
        return Sample((x, local), Rewards(reward, jnp.asarray(mean)))
