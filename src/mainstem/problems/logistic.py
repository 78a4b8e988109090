"""Logistic regression: binary classification by a linear function."""

from typing import Any

import jax.numpy as jnp

from mainstem.base import Domain, Params
from mainstem.parts.domain import everything
from mainstem.problems.supervised import LinearModel, ridge_field, softplus
from mainstem.random import Key
from mainstem.value import flag, integer, part, value


@value
class logistic(LinearModel):
    r"""Logistic regression: labels 0 and 1, scored by a linear function.

    .. math:: \ell(w) = \log(1 + \exp(\mp w \cdot x)) + \frac{\rho}{2} |w|^2

    with minus for label 1, plus for label 0, and :math:`\rho` the `ridge`. The model is one vector:
    the weights, then the intercept.

    >>> logistic(features=10).parameters
    11
    """

    features: int = integer(least=1)
    ridge: float | None = ridge_field()
    intercept: bool = flag(default=True)
    domain: Domain = part(Domain, "l2_ball(1)", default=everything())

    classes = 2
    slope = 1.0
    bend = 0.25

    def init(self, key: Key) -> Params:
        return jnp.zeros(self.features + self.intercept)

    def apply(self, params: Any, x: Any) -> Any:
        ones = jnp.ones(self.features)
        score = (x * params[: self.features]) @ ones  # for many clients faster than a dot
        return score + params[-1] if self.intercept else score

    def penalty(self, scores: Any, target: Any) -> Any:
        return softplus(jnp.where(target == 1, -scores, scores))

    def row(self, x: Any) -> Any:
        return jnp.append(x, 1) if self.intercept else x
