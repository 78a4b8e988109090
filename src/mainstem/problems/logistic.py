"""Binary classification by a linear function."""

from typing import Any

import jax
import jax.numpy as jnp

from mainstem.base import Domain, Linear, Params, Sample
from mainstem.parts.domain import everything
from mainstem.problems.supervised import Supervised, ridge_field
from mainstem.random import Key
from mainstem.value import flag, integer, part, value


@value
class logistic(Supervised):
    r"""Logistic regression: labels 0 and 1, scored by a linear function.

    .. math:: \ell(w) = \log(1 + \exp(\mp w \cdot x)) + \frac{\rho}{2} |w|^2

    with minus for label 1, plus for label 0, and :math:`\rho` the `ridge`. The model is one vector:
    the weights, then the intercept.

    >>> logistic(features=10).size
    11
    """

    features: int = integer(least=1)
    ridge: float | None = ridge_field()
    intercept: bool = flag(default=True)
    domain: Domain = part(Domain, "l2_ball(1)", default=everything())

    convex = True
    classes = 2

    @property
    def shape(self) -> tuple[int]:
        return (self.features,)

    @property
    def linear(self) -> Linear:
        return Linear(self._row, slope=1.0, bend=0.25)

    def init(self, key: Key) -> Params:
        return jnp.zeros(self.features + self.intercept)

    def apply(self, params: Any, x: Any) -> Any:
        ones = jnp.ones(self.features)
        score = (x * params[: self.features]) @ ones  # for many clients faster than a dot
        return score + params[-1] if self.intercept else score

    def penalty(self, scores: Any, target: Any) -> Any:
        return jax.nn.softplus(jnp.where(target == 1, -scores, scores))

    def _row(self, seen: Sample) -> Any:
        return jnp.append(seen.shown, 1) if self.intercept else seen.shown
