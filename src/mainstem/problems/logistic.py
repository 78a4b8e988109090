"""Binary classification by a linear function."""

from typing import Any

import jax
import jax.numpy as jnp

from mainstem import check
from mainstem.base import Domain, Linear, Problem
from mainstem.problems.supervised import supervised
from mainstem.spec import recorded


@recorded
def logistic(
    features: int, ridge: float = 0.0, intercept: bool = True, domain: Domain | None = None
) -> Problem:
    """Labels 0 and 1; loss log(1 + exp(-s)) with s the score, signed by the label.

    The model is one vector: the weights, then the intercept.

    >>> logistic(features=10).size
    11
    """
    features = check.integer("logistic", "features", features, least=1)
    ridge = check.at_least("logistic", "ridge", ridge, 0)
    size = features + bool(intercept)

    def apply(params: Any, x: Any) -> Any:
        score = (x * params[:features]) @ jnp.ones(features)  # for many clients faster than a dot
        return score + params[-1] if intercept else score

    def extended(x: Any) -> Any:
        return jnp.append(x, 1) if intercept else x

    return supervised(
        "logistic",
        init=lambda key: jnp.zeros(size),
        apply=apply,
        penalty=lambda score, label: jax.nn.softplus(jnp.where(label == 1, -score, score)),
        shape=(features,),
        classes=2,
        ridge=ridge,
        convex=True,
        curvature=ridge,
        linear=Linear(lambda seen: extended(seen.shown), slope=1.0, bend=0.25),
        domain=domain,
    )
