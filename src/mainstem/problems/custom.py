"""Custom problems: three functions define one, so that a Flax or Equinox model can be used unchanged."""

from collections.abc import Callable
from typing import Any

from mainstem import check
from mainstem.problems.supervised import Supervised, ridge_field
from mainstem.random import Key
from mainstem.value import integer, preset, static, value


@value
class Custom(Supervised):
    """A problem whose first model, scores and cost are functions; see `custom`.

    >>> import jax.numpy as jnp
    >>> Custom(lambda key: jnp.zeros(3), lambda w, x: x @ w, lambda score, y: (score - y) ** 2).parameters
    3
    """

    first: Callable[[Key], Any] = static()  # key -> the first model
    scores: Callable[[Any, Any], Any] = static()  # (params, x) -> the scores of one sample
    cost: Callable[[Any, Any], Any] = static()  # (scores, y) -> a scalar
    classes: int | None = integer(default=None, least=2)
    ridge: float | None = ridge_field()

    def admit(self) -> None:
        for name, given in (("init", self.first), ("apply", self.scores), ("loss", self.cost)):
            if not callable(given):
                raise check.refuse("custom", name, "be a function", given)

    def init(self, key: Key) -> Any:
        return self.first(key)

    def apply(self, params: Any, x: Any) -> Any:
        return self.scores(params, x)

    def penalty(self, scores: Any, target: Any) -> Any:
        return self.cost(scores, target)


@preset(Custom, init="first", apply="scores", loss="cost", classes="classes", ridge="ridge")
def custom(
    init: Callable[[Key], Any],
    apply: Callable[[Any, Any], Any],
    loss: Callable[[Any, Any], Any],
    classes: int | None = None,
    ridge: float | None = None,
) -> Custom:
    """A problem from three functions: any model, any loss.

    `init(key)` gives nested params, `apply(params, x)` the scores of one sample, `loss(scores, y)`
    their cost. With `classes` accuracy is measured, without it the squared error. Nothing is assumed
    about the loss, so regret is measured against the best model found. A Flax module:
    ``custom(lambda key: net.init(key, x), net.apply, cross_entropy, classes=10)``.

    >>> import jax.numpy as jnp
    >>> problem = custom(lambda key: {"w": jnp.zeros(3)}, lambda p, x: x @ p["w"], lambda s, y: (s - y) ** 2)
    >>> problem.parameters
    3
    """
    return Custom(init, apply, loss, classes, ridge)
