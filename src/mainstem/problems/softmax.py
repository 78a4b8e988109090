"""Classification into several classes by a linear function each."""

import math

import jax.numpy as jnp
from optax import losses

from mainstem import check
from mainstem.base import Domain, Linear, Problem
from mainstem.problems.supervised import supervised
from mainstem.spec import recorded


@recorded
def softmax(
    features: int, classes: int, ridge: float = 0.0, domain: Domain | None = None
) -> Problem:
    """Labels 0 to classes - 1; cross-entropy of the softmax of the scores.

    >>> softmax(features=64, classes=10).size
    650
    """
    features = check.integer("softmax", "features", features, least=1)
    classes = check.integer("softmax", "classes", classes, least=2)
    ridge = check.at_least("softmax", "ridge", ridge, 0)
    return supervised(
        "softmax",
        init=lambda key: {"weights": jnp.zeros((features, classes)), "bias": jnp.zeros(classes)},
        apply=lambda params, x: x @ params["weights"] + params["bias"],
        penalty=losses.softmax_cross_entropy_with_integer_labels,
        shape=(features,),
        classes=classes,
        ridge=ridge,
        convex=True,
        curvature=ridge,
        linear=Linear(lambda seen: jnp.append(seen.shown, 1), slope=math.sqrt(2), bend=0.5),
        domain=domain,
    )
