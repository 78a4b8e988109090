"""Least squares and ridge regression."""

from typing import Any

import jax.numpy as jnp

from mainstem.base import Domain, Form, Linear, Params, Sample
from mainstem.parts.domain import everything
from mainstem.problems.supervised import Supervised, ridge_field, second_moment
from mainstem.random import Key
from mainstem.value import flag, integer, part, value


@value
class linear(Supervised):
    r"""Least squares: a number is predicted by a linear function.

    .. math:: \ell(w) = \frac{1}{2} (w \cdot x - y)^2 + \frac{\rho}{2} |w|^2

    with :math:`\rho` the `ridge`. The model is one vector: the weights, then the intercept (which
    the ridge counts too).

    >>> linear(features=5).size
    6
    """

    features: int = integer(least=1)
    ridge: float | None = ridge_field()
    intercept: bool = flag(default=True)
    domain: Domain = part(Domain, "l2_ball(1)", default=everything())

    convex = True

    @property
    def shape(self) -> tuple[int]:
        return (self.features,)

    @property
    def linear(self) -> Linear:
        return Linear(self._row, slope=None, bend=1.0)

    def init(self, key: Key) -> Params:
        return jnp.zeros(self.features + self.intercept)

    def apply(self, params: Any, x: Any) -> Any:
        return self._extended(x) @ params

    def penalty(self, scores: Any, target: Any) -> Any:
        return 0.5 * (scores - target) ** 2

    def form(self, seen: Sample) -> Form:
        x = self._extended(seen.shown)
        return Form(second_moment(x, self.ridge), seen.hidden * x, 0.5 * seen.hidden**2)

    def _row(self, seen: Sample) -> Any:
        return self._extended(seen.shown)

    def _extended(self, x: Any) -> Any:
        return jnp.append(x, 1) if self.intercept else x
