"""The distinct samples of a stream with their frequencies, and the weighted mean of their losses."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import random, replay
from mainstem.base import At, Flat, Problem, Sample, Sampler, cast
from mainstem.errors import BadData
from mainstem.measure.certificate import EPS
from mainstem.measure.linear_hessian import linear_hessian
from mainstem.measure.question import Question

STEPS = 4096  # steps replayed at a time
MOST = 2**31  # bytes of samples that may be in memory at once


def weighted(question: Question, prefixes: list[int]) -> tuple[Sample, list[np.ndarray]]:
    """(the distinct samples, for each prefix the share of each sample)."""
    stream, last = question.stream, max(prefixes)
    known = stream.rows()
    if known is not None:  # then it knows the places of its samples, too
        count = len(jax.tree.leaves(known)[0])
        tallies = [np.zeros(count) for _ in prefixes]
        for first in range(1, last + 1, STEPS):
            end = min(first + STEPS - 1, last)
            table = np.asarray(stream.places(question.seed, first, end))
            for tally, prefix in zip(tallies, prefixes, strict=True):
                dealt = table[: max(0, prefix - first + 1)].ravel()
                tally += np.bincount(dealt[dealt >= 0], minlength=count)
        used = np.flatnonzero(np.sum(tallies, axis=0))
        rows = jax.tree.map(lambda x: np.asarray(x)[used], known)
        totals = [prefix * stream.clients for prefix in prefixes]
        return rows, [tally[used] / total for tally, total in zip(tallies, totals, strict=True)]
    rows = _replayed(question, last)
    share = np.repeat(np.arange(1, last + 1), stream.clients)
    here = 1 if rows.count is None else rows.count > 0
    return rows, [here * (share <= prefix) / (prefix * stream.clients) for prefix in prefixes]


def _replayed(question: Question, last: int) -> Sample:
    """All samples of the first `last` steps, ordered by step."""
    stream, key = question.stream, jnp.asarray(random.root(question.seed))
    parts = []
    with jax.enable_x64(True):
        for first in range(1, last + 1, STEPS):
            end = min(first + STEPS - 1, last)
            given = replay.given(stream, question.seed, first, end, "float64")
            steps = jnp.arange(first, end + 1)
            part = jax.device_get(_samples(key, *given, steps, clients=stream.clients))
            if sum(x.nbytes for x in jax.tree.leaves(part)) * last / (end - first + 1) > MOST:
                raise BadData("regret: the samples do not fit in memory: ask for a shorter prefix")
            parts.append(part)
    joined = jax.tree.map(lambda *x: np.concatenate(x), *parts)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), joined)


@partial(jax.jit, static_argnames="clients")
def _samples(
    key: Any, sampler: Sampler, drawn: Any, pieces: Any, steps: Any, *, clients: int
) -> Sample:
    """The samples of all clients at each step."""
    ks = jnp.arange(clients)
    return jax.vmap(lambda pieces, t: replay.arrived(sampler, key, drawn, pieces, t, ks))(
        pieces, steps
    )


class WeightedLoss:
    """The weighted mean loss over the rows, in float64, with its derivatives."""

    def __init__(self, problem: Problem, rows: Sample):
        self.problem, self.size = problem, problem.parameters
        self._widest = _widest(rows.shown)  # of the features
        self._seen = revealed(problem, jax.tree.map(jnp.asarray, cast(rows, "float64")))

    @cached_property
    def curve(self) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """(model, weights) -> the matrix of second derivatives."""
        if self.problem.linear is not None:
            return linear_hessian(self.problem, self.problem.linear, self._seen)
        return lambda params, weights: np.asarray(
            _hessian(self.problem, params, weights, self._seen)
        )

    def at(self, params: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient."""
        value, gradient = _value_and_gradient(self.problem, params, weights, self._seen)
        return float(value), np.asarray(gradient, np.float64)

    def sizes(self, params: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """The weighted mean of the absolute losses, and that of the absolute gradients."""
        value, gradient = _sizes(self.problem, params, weights, self._seen)
        return float(value), np.asarray(gradient, np.float64)

    def errors(self, params: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """Bounds on the rounding errors of value and gradient: as the problem declares, or derived.

        Derived, each loss is computed as if its model were off by `each` ulp, entry by entry, and all are
        summed up. The second derivatives in the scores are at most the first ones, as for logistic and softmax
        losses.
        """
        value, slope = self.sizes(params, weights)
        each, total = (8 + params.size) * EPS, (32 + len(weights)) * EPS
        if self.problem.rounding is not None:
            return (self.problem.rounding + total) * value, (self.problem.rounding + total) * slope
        scores = self._widest * float(abs(params).max(initial=0))
        wrong = total * value + each * float(abs(params) @ slope)
        return wrong, (total + each * (1 + scores)) * slope


@jax.jit
def revealed(problem: Problem, rows: Sample) -> Any:
    """What clients see of the samples."""
    vectors = Flat(problem)

    def seen(sample: Sample) -> Any:
        at = At(jnp.int32(1), jnp.int32(0), jnp.zeros(2, jnp.uint32))
        decision = vectors.decide(vectors.init(at.key), sample.shown, at)
        return vectors.reveal(decision, sample)

    return jax.vmap(seen)(rows)


def _mean(problem: Problem, params: Any, weights: Any, seen: Any) -> Any:
    return weights @ jax.vmap(partial(Flat(problem).loss, params))(seen)


_value_and_gradient = jax.jit(jax.value_and_grad(_mean, argnums=1))
_hessian = jax.jit(jax.hessian(_mean, argnums=1))


@jax.jit
def _sizes(problem: Problem, params: Any, weights: Any, seen: Any) -> Any:
    """The weighted means of the absolute losses and of the absolute gradients, one sample after the other."""

    def add(total: Any, given: Any) -> tuple[Any, None]:
        one, weight = given
        each = jax.value_and_grad(Flat(problem).loss)(params, one)
        return jax.tree.map(lambda x, y: x + weight * abs(y), total, each), None

    return jax.lax.scan(add, (0.0, jnp.zeros_like(params)), (seen, weights))[0]


def _widest(shown: Any) -> float:
    """The largest sum of absolute features of a sample, with an intercept."""
    leaves = [np.abs(np.asarray(x, np.float64)) for x in jax.tree.leaves(shown)]
    return 1 + sum(float(x.reshape(len(x), -1).sum(axis=1).max(initial=0)) for x in leaves)
