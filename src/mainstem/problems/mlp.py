"""Multi-layer perceptrons, for classification and for regression."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from optax import losses

from mainstem import check, random
from mainstem.base import Problem
from mainstem.problems.supervised import supervised
from mainstem.random import Key
from mainstem.spec import recorded


@recorded
def mlp(
    features: int,
    classes: int | None = None,
    hidden: Sequence[int] = (64, 64),
    ridge: float = 0.0,
) -> Problem:
    """ReLU layers of the widths `hidden`; with `classes` cross-entropy, without half squared error.

    >>> mlp(features=5).size
    4609
    """
    features = check.integer("mlp", "features", features, least=1)
    outputs = 1 if classes is None else check.integer("mlp", "classes", classes, least=2)
    ridge = check.at_least("mlp", "ridge", ridge, 0)
    if not isinstance(hidden, Sequence):
        raise check.refuse("mlp", "hidden", "be a list of widths", hidden)
    middle = [check.integer("mlp", "hidden", width, least=1) for width in hidden]
    widths = [features, *middle, outputs]

    def init(key: Key) -> Any:
        pairs = enumerate(itertools.pairwise(widths))
        return [dense(random.fold(key, i), *pair) for i, pair in pairs]

    def apply(params: Any, x: Any) -> Any:
        for layer in params[:-1]:
            x = jax.nn.relu(x @ layer["weights"] + layer["bias"])
        scores = x @ params[-1]["weights"] + params[-1]["bias"]
        return scores if classes else scores[0]

    penalty = losses.softmax_cross_entropy_with_integer_labels if classes else losses.l2_loss
    return supervised("mlp", init, apply, penalty, shape=(features,), classes=classes, ridge=ridge)


def dense(key: Key, inputs: int, outputs: int) -> dict[str, Any]:
    """A layer's first parameters: He's normal weights, no bias."""
    weights = random.normal(key, (inputs, outputs)) * math.sqrt(2 / inputs)
    return {"weights": weights, "bias": jnp.zeros(outputs)}
