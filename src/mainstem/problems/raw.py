"""Problems whose hidden part *is* the loss: nothing is shown, the decision is the model itself."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from mainstem import check
from mainstem.base import At, Domain, Form, Problem, Sample
from mainstem.errors import BadData
from mainstem.parts import domain as domains
from mainstem.random import Key
from mainstem.spec import recorded


@recorded
def quadratic(
    dimension: int = 1, curvature: float = 1.0, low: float | None = None, high: float | None = None
) -> Problem:
    """Hidden is a target a; loss curvature |x - a|^2 / 2, on everything or on the box [low, high].

    With `streams.alternating` these are the losses of Mitra et al. 2021, Section VII.

    >>> quadratic(dimension=1, low=-3, high=3).domain.name
    'box [-3, 3]'
    """
    dimension = check.integer("quadratic", "dimension", dimension, least=1)
    curvature = check.positive("quadratic", "curvature", curvature)
    if (low is None) != (high is None):
        raise check.refuse("quadratic", "low and high", "be given together", (low, high))
    domain = domains.everything() if low is None or high is None else domains.box(low, high)

    def form(target: Any) -> Form:
        return Form(
            jnp.asarray(curvature), curvature * target, 0.5 * curvature * jnp.sum(target**2)
        )

    return _raw(
        "quadratic",
        init=lambda key: jnp.asarray(domain.project(jnp.zeros(dimension))),
        loss=lambda params, target: 0.5 * curvature * jnp.sum((params - target) ** 2),
        domain=domain,
        dimension=dimension,
        curvature=curvature,
        form=form,
    )


@recorded
def experts(count: int) -> Problem:
    """Hidden is a loss for each of `count` experts; the model is a mixture of them: loss <p, losses>.

    >>> experts(count=4).domain.name
    'simplex'
    """
    count = check.integer("experts", "count", count, least=2)
    return _raw(
        "experts",
        init=lambda key: jnp.full(count, 1 / count),
        loss=lambda params, losses: params @ losses,
        domain=domains.simplex(),
        dimension=count,
        curvature=0.0,
        form=lambda losses: Form(jnp.asarray(0.0), -losses, jnp.asarray(0.0)),
    )


def _raw(
    owner: str,
    init: Callable[[Key], Any],
    loss: Callable[[Any, Any], Any],
    domain: Domain,
    dimension: int,
    curvature: float,
    form: Callable[[Any], Form],
) -> Problem:
    def decide(params: Any, shown: Any, at: At) -> Any:
        return params

    def fits(shown: Any, hidden: np.ndarray) -> None:
        if np.shape(hidden)[1:] != (dimension,):
            raise BadData(
                f"{owner}: wants hidden vectors of length {dimension}, "
                f"the stream has shape {np.shape(hidden)[1:]}"
            )

    return Problem(
        init,
        decide,
        reveal=lambda decision, sample: sample.hidden,
        loss=loss,
        metrics=_no_metrics,
        domain=domain,
        check=fits,
        convex=True,
        curvature=curvature,
        form=form,
    )


def _no_metrics(decision: Any, sample: Sample) -> dict[str, Any]:
    return {}
