"""The best fixed model in hindsight, for any prefix of a stream, in a domain.

Quadratic losses are summed as forms and minimised in closed form. Other convex losses are minimised
with a certificate. For non-convex losses the best model found is returned without a certificate.
Values are sums over steps of means over clients, the units of Mitra et al. 2021, eq. (2).
"""

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

from mainstem import random, replay
from mainstem.base import At, Domain, Flat, Form, Problem, Sample, Sampler, Stream, cast
from mainstem.errors import BadData
from mainstem.measure.certificate import Solution
from mainstem.measure.quadratic_solver import minimise_quadratic
from mainstem.measure.solver import minimise

STEPS = 4096  # steps replayed at a time
MOST = 2**31  # bytes of samples that may be in memory at once
HESSIAN = 1000  # largest number of parameters for which second derivatives are used
FOUND = (
    "best found by L-BFGS from the run's final model, without a certificate: the loss is not convex"
)


class Hindsight(NamedTuple):
    """The best models for several prefixes."""

    values: np.ndarray  # the smallest sum of losses for each prefix
    gaps: np.ndarray  # an upper bound on each value minus the true minimum
    points: np.ndarray  # the best model for each prefix
    statement: str

    @property
    def params(self) -> np.ndarray:
        """The best model for the last prefix."""
        return self.points[-1]


class Question(NamedTuple):
    """The definition of a best fixed model: its losses, its domain, its numerical settings."""

    problem: Problem
    stream: Stream
    domain: Domain
    seed: int
    dtype: str
    radius: float
    start: np.ndarray
    expected: bool = False  # the stream's expected losses instead of the drawn ones


def best_fixed(question: Question, prefixes: Sequence[int]) -> Hindsight:
    """The best fixed model for each of the prefixes, given by their numbers of steps."""
    problem = question.problem
    if question.expected or (problem.form is not None and question.stream.rows() is None):
        return _by_forms(question, list(prefixes))
    return _by_rows(question, list(prefixes))


# --- quadratic losses, replayed -------------------------------------------------------------------


def _by_forms(question: Question, prefixes: list[int]) -> Hindsight:
    """The best models, from the sums of the quadratic forms."""
    totals = list(form_sums(question, prefixes))
    matrices, vectors, constants = (np.array(part) for part in zip(*totals, strict=True))
    domain = question.domain
    projects = domain.projects and (matrices.all() or domain.unit_sum or not domain.bounded)
    if matrices.ndim == 1 and len(prefixes) > 1 and projects:
        return _isotropic(question, matrices, vectors, constants)
    return solved(
        [minimise_quadratic(*form, question.domain, radius=question.radius) for form in totals]
    )


def form_sums(question: Question, prefixes: list[int]) -> Iterator[tuple[Any, Any, float]]:
    """The summed form of each prefix, in increasing order."""
    stream, key = question.stream, jnp.asarray(random.root(question.seed))
    total, done = [0.0, 0.0, 0.0], 0
    while done < prefixes[-1]:
        last = min(done + STEPS, prefixes[-1])
        with jax.enable_x64(question.dtype == "float64"):
            given = replay.given(stream, question.seed, done + 1, last, question.dtype)
            steps, problem = jnp.arange(done + 1, last + 1), cast(question.problem, question.dtype)
            size = {"clients": stream.clients, "expected": question.expected}
            forms = _forms(problem, key, *given, steps, **size)
        running = [
            np.cumsum(np.asarray(part, np.float64), axis=0) + before
            for part, before in zip(forms, total, strict=True)
        ]
        for t in prefixes:
            if done < t <= last:
                matrix, vector, constant = (part[t - done - 1] for part in running)
                yield (matrix if np.ndim(matrix) else float(matrix)), vector, float(constant)
        total, done = [part[-1] for part in running], last


@functools.partial(jax.jit, static_argnames=("clients", "expected"))
def _forms(
    problem: Problem,
    key: Any,
    sampler: Sampler,
    drawn: Any,
    pieces: Any,
    steps: Any,
    *,
    clients: int,
    expected: bool,
) -> Form:
    """For each step, the mean of the clients' forms."""
    ks = jnp.arange(clients)

    def step(pieces: Any, t: Any) -> Form:
        if expected:
            forms = jax.vmap(lambda k: sampler.expected(t, k))(ks)
        else:
            seen, here = replay.seen(problem, sampler, key, drawn, pieces, t, ks)
            forms = jax.vmap(Form.times)(jax.vmap(problem.form)(seen), here)
        return Form(*(jnp.mean(part, axis=0) for part in forms))

    return jax.vmap(step)(pieces, steps)


def _isotropic(
    question: Question, scale: np.ndarray, vectors: np.ndarray, constants: np.ndarray
) -> Hindsight:
    """The best models of many prefixes at once, if A is a multiple of I: the minimiser is a projection."""
    domain = question.domain
    if not scale.all():
        if not domain.bounded:
            raise BadData("regret: linear losses have no best model on an unbounded domain")
        values = constants - np.array([domain.support(vector) for vector in vectors])
        points = np.eye(vectors.shape[1])[np.argmax(vectors, axis=1)]
    else:
        with jax.enable_x64(True):
            points = np.asarray(jax.vmap(domain.project)(jnp.asarray(vectors / scale[:, None])))
        values = (
            0.5 * scale * np.sum(points**2, axis=1) - np.sum(points * vectors, axis=1) + constants
        )
    gaps = 1e-12 * np.maximum(1, np.abs(constants))
    where = "over everything" if domain.whole else f"in the {domain.title}"
    return Hindsight(values, gaps, points, f"best {where} (closed form)")


# --- any loss, from the distinct samples ----------------------------------------------------------


def _by_rows(question: Question, prefixes: list[int]) -> Hindsight:
    """The best models, from the distinct samples and their frequencies."""
    rows, weights = weighted(question, prefixes)
    with jax.enable_x64(True):
        objective = _Objective(question.problem, rows)
        solutions = []
        start = np.asarray(question.start, np.float64)
        for prefix, weight in zip(prefixes, weights, strict=True):
            found = _minimised(question, objective, weight, start)
            solutions.append(found._replace(value=prefix * found.value, gap=prefix * found.gap))
            start = found.params
    return solved(solutions)


def weighted(question: Question, prefixes: list[int]) -> tuple[Sample, list[np.ndarray]]:
    """(the distinct samples, for each prefix the share of each sample)."""
    stream, last = question.stream, max(prefixes)
    known = stream.rows()
    if known is not None:
        count = len(jax.tree.leaves(known)[0])
        tallies = [np.zeros(count) for _ in prefixes]
        for first in range(1, last + 1, STEPS):
            end = min(first + STEPS - 1, last)
            table = stream.chunk(question.seed, first, end)
            for tally, prefix in zip(tallies, prefixes, strict=True):
                tally += np.bincount(table[: max(0, prefix - first + 1)].ravel(), minlength=count)
        used = np.flatnonzero(np.sum(tallies, axis=0))
        rows = jax.tree.map(lambda x: np.asarray(x)[used], known)
        return rows, [tally[used] / tally.sum() for tally in tallies]
    rows = _replayed(question, last)
    share = np.repeat(np.arange(1, last + 1), stream.clients)
    here = 1 if rows.count is None else rows.count > 0
    return rows, [here * (share <= prefix) / (prefix * stream.clients) for prefix in prefixes]


def _replayed(question: Question, last: int) -> Sample:
    """All samples of the first `last` steps, ordered by step."""
    stream, key = question.stream, jnp.asarray(random.root(question.seed))
    parts = []
    with jax.enable_x64(question.dtype == "float64"):
        for first in range(1, last + 1, STEPS):
            end = min(first + STEPS - 1, last)
            given = replay.given(stream, question.seed, first, end, question.dtype)
            steps = jnp.arange(first, end + 1)
            part = jax.device_get(_samples(key, *given, steps, clients=stream.clients))
            if sum(x.nbytes for x in jax.tree.leaves(part)) * last / (end - first + 1) > MOST:
                raise BadData("regret: the samples do not fit in memory: ask for a shorter prefix")
            parts.append(part)
    joined = jax.tree.map(lambda *x: np.concatenate(x), *parts)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), joined)


@functools.partial(jax.jit, static_argnames="clients")
def _samples(
    key: Any, sampler: Sampler, drawn: Any, pieces: Any, steps: Any, *, clients: int
) -> Sample:
    """The samples of all clients at each step."""
    ks = jnp.arange(clients)
    return jax.vmap(lambda pieces, t: replay.arrived(sampler, key, drawn, pieces, t, ks))(
        pieces, steps
    )


class _Objective:
    """The weighted mean loss over the rows, in float64, with its derivatives."""

    def __init__(self, problem: Problem, rows: Sample):
        self.size = problem.parameters
        vectors = Flat(problem)
        rows = jax.tree.map(jnp.asarray, cast(rows, "float64"))

        def seen(sample: Sample) -> Any:
            at = At(jnp.int32(1), jnp.int32(0), jnp.zeros(2, jnp.uint32))
            decision = vectors.decide(vectors.init(at.key), sample.shown, at)
            return vectors.reveal(decision, sample)

        def mean(params: Any, weights: Any, rows: Any) -> Any:
            losses = jax.vmap(lambda sample: vectors.loss(params, seen(sample)))(rows)
            return weights @ losses

        gradient = jax.jit(jax.value_and_grad(mean))
        hessian = jax.jit(jax.hessian(mean))
        self._gradient = lambda params, weights: gradient(params, weights, rows)
        self._hessian = lambda params, weights: hessian(params, weights, rows)

    def at(self, params: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient."""
        value, gradient = self._gradient(params, weights)
        return float(value), np.asarray(gradient, np.float64)

    def curve(self, params: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The matrix of second derivatives."""
        return np.asarray(self._hessian(params, weights), np.float64)


def _minimised(
    question: Question, objective: _Objective, weight: np.ndarray, start: np.ndarray
) -> Solution:
    problem = question.problem
    if not problem.convex:
        found = scipy.optimize.minimize(
            objective.at, start, (weight,), "L-BFGS-B", True, options={"maxiter": 200}
        )
        return Solution(found.x, float(found.fun), math.inf, FOUND)
    return minimise(
        lambda params: objective.at(params, weight),
        start,
        question.domain,
        curvature=float(problem.curvature),
        hessian=(lambda params: objective.curve(params, weight))
        if objective.size <= HESSIAN
        else None,
        radius=question.radius,
    )


def solved(solutions: list[Solution]) -> Hindsight:
    last = solutions[-1]
    values, gaps = (np.array([getattr(s, name) for s in solutions]) for name in ("value", "gap"))
    return Hindsight(values, gaps, np.stack([s.params for s in solutions]), last.statement)
