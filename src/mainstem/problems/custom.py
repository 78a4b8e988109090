"""Any model: three functions make a problem, so a Flax or Equinox model drops in unchanged."""

from collections.abc import Callable
from typing import Any

from mainstem import check
from mainstem.base import Problem
from mainstem.problems.supervised import supervised
from mainstem.random import Key
from mainstem.spec import recorded


@recorded
def custom(
    init: Callable[[Key], Any],
    apply: Callable[[Any, Any], Any],
    loss: Callable[[Any, Any], Any],
    classes: int | None = None,
    ridge: float = 0.0,
) -> Problem:
    """`init(key)` gives nested params, `apply(params, x)` the scores of one sample, `loss(scores, y)`.

    With `classes` accuracy is measured, without it the squared error. Nothing is assumed of the
    loss, so regret is against the best model found. A Flax module:
    ``custom(lambda key: net.init(key, x), net.apply, cross_entropy, classes=10)``.

    >>> import jax.numpy as jnp
    >>> problem = custom(lambda key: {"w": jnp.zeros(3)}, lambda p, x: x @ p["w"], lambda s, y: (s - y) ** 2)
    >>> problem.size
    3
    """
    for name, function in (("init", init), ("apply", apply), ("loss", loss)):
        if not callable(function):
            raise check.refuse("custom", name, "be a function", function)
    if classes is not None:
        check.integer("custom", "classes", classes, least=2)
    ridge = check.at_least("custom", "ridge", ridge, 0)
    return supervised("custom", init, apply, loss, shape=None, classes=classes, ridge=ridge)
