"""Multi-layer perceptrons, for classification and for regression."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from optax import losses

from mainstem import check, random
from mainstem.problems.precision import lowered, precision_field, restored
from mainstem.problems.supervised import Supervised, ridge_field
from mainstem.random import Key
from mainstem.value import integer, static, value


def _widths(owner: str, name: str, given: Any) -> tuple[int, ...]:
    if not isinstance(given, Sequence):
        raise check.refuse(owner, name, "be a list of widths", given)
    return tuple(check.integer(owner, name, width, least=1) for width in given)


@value
class mlp(Supervised):
    r"""A multi-layer perceptron with ReLU layers of the widths `hidden`.

    .. math:: x_{i+1} = \max(0, W_i^T x_i + b_i), \quad s = W_n^T x_n + b_n

    With `classes` the loss is the cross-entropy of the softmax of s, without it half the squared
    error of the one score. With `precision="bfloat16"` the layers are computed with 16 bits; parameters, losses
    and sums over clients stay in the run's dtype.

    >>> mlp(features=5).parameters
    4609
    """

    features: int = integer(least=1)
    classes: int | None = integer(default=None, least=2)
    hidden: Sequence[int] = static(default=(64, 64), checked=_widths)
    ridge: float | None = ridge_field()
    precision: str = precision_field()

    @property
    def shape(self) -> tuple[int]:
        return (self.features,)

    def init(self, key: Key) -> Any:
        widths = [self.features, *self.hidden, 1 if self.classes is None else self.classes]
        pairs = enumerate(itertools.pairwise(widths))
        return [dense(random.fold(key, i), *pair) for i, pair in pairs]

    def apply(self, params: Any, x: Any) -> Any:
        params, x = lowered(self.precision, (params, x))
        for layer in params[:-1]:
            x = jax.nn.relu(_affine(layer, x))
        scores = restored(self.precision, _affine(params[-1], x))
        return scores[0] if self.classes is None else scores

    def penalty(self, scores: Any, target: Any) -> Any:
        if self.classes is None:
            return losses.l2_loss(scores, target)
        return losses.softmax_cross_entropy_with_integer_labels(scores, target)


def _affine(layer: Any, x: Any) -> Any:
    """W^T x + b. On an accelerator the bias is a row of W: its gradient needs no sum over clients of its own."""
    if jax.default_backend() == "cpu":
        return x @ layer["weights"] + layer["bias"]
    one, row = jnp.ones(1, x.dtype), layer["bias"][None]
    return jnp.concatenate([one, x]) @ jnp.concatenate([row, layer["weights"]])


def dense(key: Key, inputs: int, outputs: int) -> dict[str, Any]:
    """The first parameters of a layer: He's normal weights, and a bias of zero."""
    weights = random.normal(key, (inputs, outputs)) * math.sqrt(2 / inputs)
    return {"weights": weights, "bias": jnp.zeros(outputs)}
