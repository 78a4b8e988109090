"""Contract of problems."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import random, replay
from mainstem.base import SEVERAL, At, Flat, Problem, Sample, Stream, cast
from mainstem.testing.comparisons import promised, same
from mainstem.testing.values import check_value

CLOSE = 1e-9  # relative to the larger of 1 and the numbers


def check_problem(problem: Problem, stream: Stream) -> None:
    """Checks the facts that a problem declares, on the first samples of `stream`.

    >>> from mainstem import problems, streams
    >>> check_problem(problems.softmax(64, 10), streams.digits(clients=4))
    """
    check_value(problem)
    with jax.enable_x64(True):
        samples = cast(replay.first_samples(stream), "float64")
        problem.check(*jax.tree.map(np.asarray, (samples.shown, samples.hidden)))
        vectors = Flat(problem)
        start = vectors.init(jnp.asarray(random.root(0)))
        draw = np.random.default_rng(1).normal(size=(3, problem.parameters))
        places = [np.asarray(problem.domain.project(start + 0.3 * move)) for move in draw]
        at = replay.at_all(random.root(0), random.DECIDE, jnp.int32(1), jnp.arange(stream.clients))
        for params in places:
            _decides(problem, vectors, jnp.asarray(params), samples, at)
        _bends(problem, vectors, places, samples, at)


def _decides(problem: Problem, vectors: Flat, params: Any, samples: Sample, at: At) -> None:
    one = jax.vmap(vectors.one, in_axes=(None, 0, SEVERAL))(params, samples, at)
    seen, losses, metrics = one
    assert np.isfinite(losses).all(), f"{problem}: a loss is not finite"
    assert all(np.shape(each) == np.shape(losses) for each in metrics.values()), (
        "metrics are scalars"
    )
    many = vectors.many(params, samples, at)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(many), strict=True):
        same(b, a, f"{problem}: `vectorized`, together and one by one", CLOSE)
    slopes = jax.vmap(lambda seen: vectors.gradient(params, seen))(seen)
    assert np.isfinite(slopes).all(), f"{problem}: a gradient is not finite"
    if problem.form is not None:
        formed = jax.vmap(lambda seen: problem.form(seen).value(params))(seen)
        same(formed, losses, f"{problem}: `form` and the loss", CLOSE)
    if problem.linear is not None and problem.linear.slope is not None and not problem.curvature:
        rows = jax.vmap(problem.linear.features)(seen)
        most = problem.linear.slope * np.linalg.norm(rows, axis=1)
        steep = np.linalg.norm(slopes, axis=1)
        worst = int(np.argmax(steep - most))
        kept = np.all(steep <= most + 1e-9)
        promised(kept, f"{problem}: a gradient's norm, at most", steep[worst], most[worst])


def _bends(problem: Problem, vectors: Flat, places: list[Any], samples: Sample, at: At) -> None:
    """Checks the declared convexity and curvature, between pairs of models."""
    if not problem.convex:
        return
    seen = jax.vmap(vectors.one, in_axes=(None, 0, SEVERAL))(places[0], samples, at)[0]
    losses = jax.vmap(vectors.loss, in_axes=(None, 0))
    for one, other in itertools.pairwise(places):
        middle = losses((one + other) / 2, seen)
        bent = float(problem.curvature) / 8 * float(np.sum((one - other) ** 2))
        chord = (losses(one, seen) + losses(other, seen)) / 2 - bent
        worst = int(np.argmax(middle - chord))
        what = f"{problem}: is not convex, or less curved: the loss between two models, at most"
        promised(np.all(middle <= chord + 1e-9), what, middle[worst], chord[worst])
