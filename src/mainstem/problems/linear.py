"""Least squares and ridge regression."""

from typing import Any

import jax.numpy as jnp

from mainstem import check
from mainstem.base import Domain, Form, Linear, Params, Problem, Sample
from mainstem.problems.supervised import supervised
from mainstem.random import Key
from mainstem.spec import recorded


@recorded
def linear(
    features: int, ridge: float = 0.0, intercept: bool = True, domain: Domain | None = None
) -> Problem:
    """Predict a number by a linear function; loss (prediction - y)^2 / 2 + ridge |w|^2 / 2.

    The model is one vector: the weights, then the intercept (which the ridge counts too).

    >>> linear(features=5).size
    6
    """
    features = check.integer("linear", "features", features, least=1)
    ridge = check.at_least("linear", "ridge", ridge, 0)
    size = features + bool(intercept)

    def extended(shown: Any) -> Any:
        return jnp.append(shown, 1) if intercept else shown

    def init(key: Key) -> Params:
        return jnp.zeros(size)

    def form(seen: Sample) -> Form:
        x = extended(seen.shown)
        matrix = jnp.outer(x, x) + ridge * jnp.eye(size)
        return Form(matrix, seen.hidden * x, 0.5 * seen.hidden**2)

    return supervised(
        "linear",
        init,
        apply=lambda params, shown: extended(shown) @ params,
        penalty=lambda scores, target: 0.5 * (scores - target) ** 2,
        shape=(features,),
        classes=None,
        ridge=ridge,
        convex=True,
        curvature=ridge,
        domain=domain,
        form=form,
        linear=Linear(lambda seen: extended(seen.shown), slope=None, bend=1.0),
    )
