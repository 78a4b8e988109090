"""What all supervised problems share: a model scores, the label is revealed, the loss is charged."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check as checks
from mainstem.base import At, Domain, Form, Linear, Problem, Sample
from mainstem.errors import BadData
from mainstem.parts.domain import everything
from mainstem.random import Key

Apply = Callable[[Any, Any], Any]  # (params, features) -> scores
Penalty = Callable[[Any, Any], Any]  # (scores, target) -> scalar


def supervised(
    owner: str,
    init: Callable[[Key], Any],
    apply: Apply,
    penalty: Penalty,
    *,
    shape: Any,
    classes: int | None,
    ridge: float = 0.0,
    convex: bool = False,
    curvature: float = 0.0,
    domain: Domain | None = None,
    form: Callable[[Sample], Form] | None = None,
    linear: Linear | None = None,
    apply_many: Apply | None = None,
    block: int | None = None,
) -> Problem:
    """A problem that scores features of `shape` (or of several) and pays `penalty`, plus ridge |params|^2 / 2.

    With `classes` the target is a label and the metric `correct`; without, it is a number and the
    metric `squared_error`. `apply_many` scores many samples at once, where that is faster,
    and on a CPU no more than `block` of them.
    """
    if domain is not None:
        checks.instance(owner, "domain", domain, Domain, "l2_ball(1)")

    def decide(params: Any, shown: Any, at: At) -> Any:
        return apply(params, shown)

    def charged(params: Any, scores: Any, target: Any) -> Any:
        paid = penalty(scores, target)
        return paid + 0.5 * ridge * _squared_norm(params) if ridge else paid

    def loss(params: Any, seen: Sample) -> Any:
        return charged(params, apply(params, seen.shown), seen.hidden)

    def together(params: Any, samples: Sample, at: At) -> Any:
        scores = apply_many(params, samples.shown)  # type: ignore[misc]
        losses = jax.vmap(charged, in_axes=(None, 0, 0))(params, scores, samples.hidden)
        return samples, losses, jax.vmap(metrics)(scores, samples)

    def metrics(scores: Any, sample: Sample) -> Mapping[str, Any]:
        if classes is None:
            return {"squared_error": jnp.square(jnp.squeeze(scores) - sample.hidden)}
        guess = scores > 0 if jnp.ndim(scores) == 0 else jnp.argmax(scores)
        return {"correct": (guess == sample.hidden).astype(jnp.result_type(float))}

    def check(shown: np.ndarray, hidden: np.ndarray) -> None:
        _check_features(owner, shown, shape)
        if classes is None:
            _check_numbers(owner, hidden)
        else:
            _check_labels(owner, hidden, classes)

    return Problem(
        init,
        decide,
        reveal=lambda decision, sample: sample,
        loss=loss,
        metrics=metrics,
        domain=everything() if domain is None else domain,
        check=check,
        convex=convex,
        curvature=curvature,
        form=form,
        linear=linear,
        together=None if apply_many is None else together,
        block=block,
        features=shape,
        classes=classes,
    )


def _squared_norm(params: Any) -> Any:
    return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(params))


def _check_features(owner: str, shown: Any, shape: Any) -> None:
    found = jax.tree.map(lambda x: np.shape(x)[1:], shown)
    if shape is not None and found != shape:
        raise BadData(f"{owner}: wants features of shape {shape}, the stream has {found}")


def _check_numbers(owner: str, hidden: np.ndarray) -> None:
    if np.ndim(hidden) != 1 or not np.issubdtype(hidden.dtype, np.number):
        raise BadData(
            f"{owner}: wants one number as target, the stream has "
            f"{hidden.dtype} of shape {hidden.shape[1:]}"
        )


def _check_labels(owner: str, hidden: np.ndarray, classes: int) -> None:
    if np.ndim(hidden) != 1 or not np.issubdtype(hidden.dtype, np.integer):
        raise BadData(
            f"{owner}: wants integer labels 0 to {classes - 1}, the stream has "
            f"{hidden.dtype} of shape {hidden.shape[1:]}"
        )
    wrong = np.flatnonzero((hidden < 0) | (hidden >= classes))
    if wrong.size:
        row = int(wrong[0])
        raise BadData(f"{owner}: wants labels 0 to {classes - 1}, row {row} has {int(hidden[row])}")
