r"""Streams of FedSEA (Sahu et al. 2026): an adversary selects the distributions, and the stream knows them.

The targets are :math:`c_{t,m} = c + drift_t + offset_m`. Three parameters set the constants of the
paper's bounds: `noise` is sigma^2 (8), `spatial` is zeta^2 (4), `temporal` is the mean of K_t^2 (5)
against the best fixed point of many steps. Expected losses are quadratic forms, so expected and
virtual regret have closed forms.
"""

import abc
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check, random
from mainstem.base import At, Form, Sample, Stream, constant
from mainstem.value import at_least, integer, one_of, positive, value

DRIFTS = ("alternating", "random", "slow")


class Sea(Stream):
    """Targets around a moving centre, with an offset for each client."""

    dimension: int
    noise: float
    spatial: float
    temporal: float
    drift: str
    distance: float
    seed: int

    def admit(self) -> None:
        if self.spatial > 0 and self.clients == 1:
            owner = type(self).__name__
            raise check.refuse(owner, "spatial", "be 0 for a single client", self.spatial)

    @property
    @abc.abstractmethod
    def away(self) -> Any:
        """The mean squared norm of the offsets."""

    @property
    @abc.abstractmethod
    def step_out(self) -> Any:
        """The root mean square of the drift's norm."""

    def target(self, t: Any, k: Any) -> jax.Array:
        """The mean target of client k at step t: c + drift_t + offset_k."""
        center = constant(self.distance) * self._direction()
        offset = (
            jnp.sqrt(self.away) * constant(_offsets(self.clients, self.dimension, self.seed))[k]
        )
        return center + self._moved(t) + offset

    def _moved(self, t: Any) -> jax.Array:
        if self.drift == "alternating":
            return jnp.where(t % 2 == 0, self.step_out, -self.step_out) * self._direction()
        if self.drift == "slow":
            wave = jnp.sin(2 * math.pi * t / 1000)
            return math.sqrt(2) * self.step_out * wave * self._direction()
        key = random.fold(random.root(self.seed), t)
        return self.step_out / math.sqrt(self.dimension) * random.normal(key, (self.dimension,))

    def _direction(self) -> jax.Array:
        return constant(np.ones(self.dimension) / math.sqrt(self.dimension))


@functools.cache
def _offsets(clients: int, dimension: int, seed: int) -> np.ndarray:
    """Random offsets with mean 0 and, for several clients, mean squared norm 1."""
    offsets = np.random.default_rng(seed).normal(size=(clients, dimension))
    offsets -= offsets.mean(axis=0)
    if clients > 1:
        offsets /= math.sqrt(np.mean(np.sum(offsets**2, axis=1)))
    return offsets


@value
class sea_quadratic(Sea):
    """Targets for `problems.quadratic(dimension, curvature)`: normal around a moving centre.

    `distance` is the distance of the mean centre from the origin; `drift` is alternating (+, -, +, ...),
    random (a new normal draw at each step) or slow (a sine wave with a length of 1,000 steps).

    >>> still = sea_quadratic(clients=3, dimension=4, noise=0.0, distance=2.0)
    >>> float(still.expected(t=1, k=0).value(jnp.zeros(4)))
    2.0
    """

    clients: int = integer(least=1)
    dimension: int = integer(default=5, least=1)
    noise: float = at_least(0, default=1.0)
    spatial: float = at_least(0, default=0.0)
    temporal: float = at_least(0, default=0.0)
    drift: str = one_of(*DRIFTS, default="alternating")
    distance: float = at_least(0, default=1.0)
    curvature: float = positive(default=1.0)
    seed: int = integer(default=0, least=0)

    @property
    def variance(self) -> Any:
        """The variance of a target around its expectation, in each coordinate."""
        return constant(self.noise) / self.dimension / constant(self.curvature) ** 2

    @property
    def away(self) -> Any:
        return constant(self.spatial) / constant(self.curvature) ** 2

    @property
    def step_out(self) -> Any:
        return jnp.sqrt(2 * constant(self.temporal) / constant(self.curvature))

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        errors = random.normal(at.key, (self.dimension,))
        return Sample((), self.target(at.t, at.k) + jnp.sqrt(self.variance) * errors)

    def expected(self, t: Any, k: Any) -> Form:
        curvature, c = constant(self.curvature), self.target(t, k)
        second = c @ c + self.dimension * self.variance
        return Form(curvature, curvature * c, 0.5 * curvature * second)


@value
class sea_ridge(Sea):
    """Regression for `problems.linear(dimension, ridge, intercept=False)`: x ~ N(0, I), y = <c, x> + e.

    Here `noise` is the variance of the label's error e (the variance of the gradient grows with the
    distance from c, so there is no single sigma^2); `spatial` and `temporal` are as in the paper.

    >>> float(sea_ridge(clients=3, dimension=4, noise=0.5, distance=2.0).expected(1, 0).constant)
    2.25
    """

    clients: int = integer(least=1)
    dimension: int = integer(default=5, least=1)
    noise: float = at_least(0, default=1.0)
    spatial: float = at_least(0, default=0.0)
    temporal: float = at_least(0, default=0.0)
    drift: str = one_of(*DRIFTS, default="alternating")
    distance: float = at_least(0, default=1.0)
    ridge: float = at_least(0, default=0.1)
    seed: int = integer(default=0, least=0)

    @property
    def away(self) -> Any:
        return constant(self.spatial)

    @property
    def step_out(self) -> Any:
        return jnp.sqrt(2 * constant(self.temporal) * (1 + constant(self.ridge)))

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        draws = random.normal(at.key, (self.dimension + 1,))
        x = draws[: self.dimension]
        error = jnp.sqrt(constant(self.noise)) * draws[self.dimension]
        return Sample(x, x @ self.target(at.t, at.k) + error)

    def expected(self, t: Any, k: Any) -> Form:
        c = self.target(t, k)
        matrix = (1 + constant(self.ridge)) * jnp.eye(self.dimension)
        return Form(matrix, c, 0.5 * (c @ c + constant(self.noise)))
