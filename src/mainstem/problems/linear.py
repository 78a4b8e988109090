"""Linear regression: least squares, with or without ridge."""

from typing import Any

import jax.numpy as jnp

from mainstem.base import Domain, Params
from mainstem.parts.domain import everything
from mainstem.problems.supervised import LeastSquares, ridge_field
from mainstem.random import Key
from mainstem.value import flag, integer, part, value


@value
class linear(LeastSquares):
    r"""Least squares: predicts a number by a linear function.

    .. math:: \ell(w) = \frac{1}{2} (w \cdot x - y)^2 + \frac{\rho}{2} |w|^2

    with :math:`\rho` the `ridge`. The model is one vector: the weights, then the intercept (to
    which the ridge applies too).

    >>> linear(features=5).parameters
    6
    """

    features: int = integer(least=1)
    ridge: float | None = ridge_field()
    intercept: bool = flag(default=True)
    domain: Domain = part(Domain, "l2_ball(1)", default=everything())

    def init(self, key: Key) -> Params:
        return jnp.zeros(self.features + self.intercept)

    def row(self, x: Any) -> Any:
        return jnp.append(x, 1) if self.intercept else x
