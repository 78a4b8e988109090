"""Supervised problems: the model computes scores, then the target is revealed. Base classes."""

import abc
from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check
from mainstem.base import At, Domain, Form, Linear, Problem, Sample
from mainstem.errors import BadData
from mainstem.parts.domain import everything
from mainstem.value import leaf


def _ridge(owner: str, name: str, given: Any) -> float | None:
    return check.at_least(owner, name, given, 0) or None


def ridge_field() -> Any:
    """A field for the factor of |params|^2 / 2 in the loss; 0 is stored as None, which costs no computation."""
    return leaf(default=None, checked=_ridge)


@jax.custom_jvp
def softplus(x: Any) -> Any:
    """log(1 + exp(x)), with the sigmoid as its slope: JAX's own has two more exponentials there.

    >>> round(float(jax.grad(softplus)(0.0)), 3), round(float(softplus(-1000.0)), 3)
    (0.5, 0.0)
    """
    return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


@softplus.defjvp
def _softplus_slope(at: tuple[Any], along: tuple[Any]) -> tuple[Any, Any]:
    return softplus(*at), jax.nn.sigmoid(*at) * along[0]


class Supervised(Problem):
    """A problem with scores of features of a `shape`; the loss is a penalty plus ridge |params|^2 / 2.

    With `classes` the target is a label and the metric is `correct`. Without, the target is a number and
    the metric is `squared_error`.
    """

    domain: Domain = everything()
    ridge: float | None = None
    apply_many: Any = None  # (params, many samples) -> their scores, if that is faster

    @abc.abstractmethod
    def apply(self, params: Any, x: Any) -> Any:
        """The scores of one sample."""

    @abc.abstractmethod
    def penalty(self, scores: Any, target: Any) -> Any:
        """The penalty of these scores: a scalar."""

    @property
    def curvature(self) -> Any:
        return 0.0 if self.ridge is None or not self.convex else self.ridge

    @property
    def vectorized(self) -> Any:
        return None if self.apply_many is None else self._vectorized

    @property
    def scored(self) -> Any:
        return self._scored if self.classes in (None, 2) else None

    def decide(self, params: Any, shown: Any, at: At) -> Any:
        return self.apply(params, shown)

    def reveal(self, decision: Any, sample: Sample) -> Sample:
        return sample

    def loss(self, params: Any, seen: Sample) -> Any:
        return self._charged(params, self.apply(params, seen.shown), seen.hidden)

    def metrics(self, decision: Any, sample: Sample) -> Mapping[str, Any]:
        if self.classes is None:
            return {"squared_error": jnp.square(jnp.squeeze(decision) - sample.hidden)}
        if jnp.ndim(decision) == 0:
            correct = (decision > 0) == sample.hidden
        else:
            correct = _is_first_maximum(decision, sample.hidden)
        return {"correct": correct.astype(jnp.result_type(float))}

    def check(self, shown: Any, hidden: np.ndarray) -> None:
        wrong = _wrong_features(shown, self.shape) or _wrong_target(hidden, self.classes)
        if wrong is not None:
            raise BadData(f"{self.call()[0]}: wants {wrong}")

    def _scored(self, params: Any, seen: Sample) -> tuple[Any, Any]:
        decision = jnp.squeeze(self.apply(params, seen.shown))
        return decision if jnp.ndim(decision) == 0 else decision[1] - decision[0], seen.hidden

    def _charged(self, params: Any, scores: Any, target: Any) -> Any:
        paid = self.penalty(scores, target)
        return paid if self.ridge is None else paid + 0.5 * self.ridge * _squared_norm(params)

    def _vectorized(self, params: Any, samples: Sample, at: At) -> Any:
        scores = self.apply_many(params, samples.shown)
        losses = jax.vmap(self._charged, in_axes=(None, 0, 0))(params, scores, samples.hidden)
        return samples, losses, jax.vmap(self.metrics)(scores, samples)


def _is_first_maximum(scores: Any, index: Any) -> Any:
    """Whether `index` is that of the first maximum; XLA's argmax is slow on CPUs.

    >>> [bool(_is_first_maximum(jnp.array([1, 3, 3]), n)) for n in range(3)]
    [False, True, False]
    """
    at, score = jnp.arange(len(scores)), scores[index]
    return jnp.where(at < index, scores < score, scores <= score).all()


class LinearModel(Supervised):
    """Scores that are linear in the model: `row(x)` is the vector by which the model is multiplied."""

    features: int
    slope: ClassVar[float | None] = None  # the largest gradient of the penalty in the scores
    bend: ClassVar[float]  # its largest second derivative

    convex = True
    rounding = None

    @abc.abstractmethod
    def row(self, x: Any) -> Any:
        """The vector by which the model is multiplied."""

    @property
    def shape(self) -> tuple[int]:
        return (self.features,)

    @property
    def linear(self) -> Linear:
        return Linear(self._seen_row, self.slope, self.bend, self.columns, self._seen_penalty)

    def columns(self, params: Any) -> Any:
        """The model as a matrix: scores are `row(x)` times it."""
        return jnp.reshape(params, (-1, 1))

    def _seen_penalty(self, scores: Any, seen: Sample) -> Any:
        return self.penalty(jnp.squeeze(scores), seen.hidden)

    def _seen_row(self, seen: Sample) -> Any:
        return self.row(seen.shown)


class LeastSquares(LinearModel):
    """Half the squared error of a prediction that is linear in the model."""

    bend = 1.0

    def apply(self, params: Any, x: Any) -> Any:
        return self.row(x) @ params

    def penalty(self, scores: Any, target: Any) -> Any:
        return 0.5 * (scores - target) ** 2

    def form(self, seen: Sample) -> Form:
        x = self.row(seen.shown)
        return Form(second_moment(x, self.ridge), seen.hidden * x, 0.5 * seen.hidden**2)


def second_moment(x: Any, ridge: Any) -> Any:
    """x x' + ridge I, in the dtype in force."""
    matrix = jnp.outer(x, x).astype(jnp.result_type(float))
    return matrix if ridge is None else matrix + ridge * jnp.eye(x.size)


def _squared_norm(params: Any) -> Any:
    return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(params))


def _wrong_features(shown: Any, shape: Any) -> str | None:
    found = jax.tree.map(lambda x: np.shape(x)[1:], shown)
    if shape is None or found == shape:
        return None
    hint = ": for batches take problems.batched" if found[1:] == shape else ""
    return f"features of shape {shape}, the stream has {found}{hint}"


def _wrong_target(hidden: np.ndarray, classes: int | None) -> str | None:
    kind: Any = np.number
    wanted = "one number as target"
    if classes is not None:
        kind, wanted = np.integer, f"integer labels 0 to {classes - 1}"
    if np.ndim(hidden) != 1 or not np.issubdtype(hidden.dtype, kind):
        hint = (
            ": for labels, streams of arrays and files take classes=True; for a number, take linear"
        )
        hint = "" if classes is None else hint
        return f"{wanted}, the stream has {hidden.dtype} of shape {hidden.shape[1:]}{hint}"
    if classes is None:
        return None
    rows = np.flatnonzero((hidden < 0) | (hidden >= classes))
    return f"labels 0 to {classes - 1}, row {rows[0]} has {hidden[rows[0]]}" if rows.size else None
