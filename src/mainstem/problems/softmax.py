"""Softmax regression: classification into several classes, with a linear function for each."""

import math
from typing import Any

import jax.numpy as jnp
from optax import losses

from mainstem.base import Domain
from mainstem.parts.domain import everything
from mainstem.problems.supervised import LinearModel, ridge_field
from mainstem.random import Key
from mainstem.value import integer, part, value


@value
class softmax(LinearModel):
    r"""Multinomial logistic regression: labels 0 to classes - 1, cross-entropy of the softmax of the scores.

    .. math:: \ell(W, b) = \log \sum_c \exp(s_c) - s_y + \frac{\rho}{2} (|W|^2 + |b|^2), \quad s = W^T x + b

    with :math:`\rho` the `ridge`.

    >>> softmax(features=64, classes=10).parameters
    650
    """

    features: int = integer(least=1)
    classes: int = integer(least=2)
    ridge: float | None = ridge_field()
    domain: Domain = part(Domain, "l2_ball(1)", default=everything())

    slope = math.sqrt(2)
    bend = 0.5

    def init(self, key: Key) -> Any:
        weights = jnp.zeros((self.features, self.classes))
        return {"weights": weights, "bias": jnp.zeros(self.classes)}

    def apply(self, params: Any, x: Any) -> Any:
        return x @ params["weights"] + params["bias"]

    def penalty(self, scores: Any, target: Any) -> Any:
        return losses.softmax_cross_entropy_with_integer_labels(scores, target)

    def row(self, x: Any) -> Any:
        return jnp.append(x, 1)

    def columns(self, params: Any) -> Any:
        return jnp.concatenate([params["weights"], params["bias"][None]])
