"""The best fixed model in hindsight, for any prefix of a stream, in a domain.

Quadratic losses are summed as forms and minimised in closed form. Other convex losses are minimised
with a certificate. For non-convex losses the best model found is returned without a certificate.
Values are sums over steps of means over clients, the units of Mitra et al. 2021, eq. (2).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

from mainstem import random, replay
from mainstem.base import At, Domain, Flat, Form, Problem, Sample, Sampler, Stream, cast
from mainstem.errors import BadData
from mainstem.measure.certificate import EPS, Solution, certified
from mainstem.measure.quadratic_solver import decompose, minimise_sum
from mainstem.measure.quadratic_sums import QuadraticSum, about_zero
from mainstem.measure.solver import minimise

STEPS = 4096  # steps replayed at a time
MOST = 2**31  # bytes of samples that may be in memory at once
NUMBERS = 2**24  # of all forms that may be in memory at once
PRECISE = 1e-9  # a relative gap below which sums about 0 are precise enough
HESSIAN = 1000  # largest number of parameters for which second derivatives are used
FOUND = "best found by L-BFGS from the run's final model"
UNPROVEN = ", without a certificate: the loss is not convex"


class Hindsight(NamedTuple):
    """The best models for several prefixes."""

    values: np.ndarray  # the smallest sum of losses for each prefix
    gaps: np.ndarray  # an upper bound on each value minus the true minimum
    points: np.ndarray  # the best model for each prefix
    title: str  # "best", and the set over which they are
    note: str = ""  # what else the certificates depend on

    @property
    def params(self) -> np.ndarray:
        """The best model for the last prefix."""
        return self.points[-1]

    @property
    def statement(self) -> str:
        """The title with the certificate of the last prefix."""
        return certified(self.title, float(self.gaps[-1]), self.note)


class Question(NamedTuple):
    """The definition of a best fixed model: its losses, its domain, its numerical settings.

    Its losses are those of the stream in float64, whatever the dtype of a run: draws are the same in both.
    """

    problem: Problem
    stream: Stream
    domain: Domain
    seed: int
    radius: float
    start: np.ndarray
    expected: bool = False  # the stream's expected losses instead of the drawn ones


def best_fixed(question: Question, prefixes: Sequence[int]) -> Hindsight:
    """The best fixed model for each of the prefixes, given by their numbers of steps."""
    problem, rows = question.problem, question.stream.rows()
    if question.expected or (problem.form is not None and rows is None):
        return _best_quadratic(question, _Replayed(question, list(prefixes)))
    if problem.form is not None and problem.parameters <= HESSIAN:
        return _best_quadratic(question, _Dealt(question, list(prefixes)))
    return _by_rows(question, list(prefixes))


# --- quadratic losses -----------------------------------------------------------------------------


class _Losses(Protocol):
    """The quadratic losses of a stream, summed for each prefix."""

    def about_zero(self) -> list[QuadraticSum]:
        """The sums about 0."""

    def about(self, sums: list[QuadraticSum], centre: np.ndarray) -> list[QuadraticSum]:
        """The same sums about another point."""


def _best_quadratic(question: Question, losses: _Losses) -> Hindsight:
    """The best models, from sums about 0, and again about the best model where rounding is felt."""
    sums = losses.about_zero()
    found = _best_of(question, sums)
    felt = np.any(found.gaps > PRECISE * np.maximum(1, abs(found.values)))
    if felt and not question.expected and np.all(sums[-1].diagonal > 0):
        found = _best_of(question, losses.about(sums, found.params))
    return found


def _best_of(question: Question, sums: list[QuadraticSum]) -> Hindsight:
    domain, scales = question.domain, [np.asarray(each.matrix) for each in sums]
    flat = not all(scale.all() for scale in scales)
    projects = domain.projects and (not flat or domain.unit_sum or not domain.bounded)
    if scales[0].ndim == 0 and len(sums) > 1 and projects:
        return _isotropic(question, sums)
    return solved([minimise_sum(each, domain, radius=question.radius) for each in sums])


class _Replayed(NamedTuple):
    """Losses of samples that are replayed, or the stream's expected losses."""

    question: Question
    prefixes: list[int]

    def about_zero(self) -> list[QuadraticSum]:
        """The sums about 0, from the forms of the losses."""
        clients, expected = self.question.stream.clients, self.question.expected
        found = self._summed(partial(_forms, clients=clients, expected=expected), ())
        return [
            about_zero(form.matrix, form.vector, float(form.constant), t + clients, sizes)
            for t, (form, sizes) in zip(self.prefixes, found, strict=True)
        ]

    def about(self, sums: list[QuadraticSum], centre: np.ndarray) -> list[QuadraticSum]:
        """The sums about another point, from the losses and gradients there."""
        clients = self.question.stream.clients
        found = self._summed(partial(_losses, clients=clients), (centre,))
        return [
            each.about(centre, float(value), gradient, t + clients)
            for t, each, (value, gradient) in zip(self.prefixes, sums, found, strict=True)
        ]

    def _summed(self, of: Callable[..., Any], given: tuple[Any, ...]) -> Iterator[Any]:
        """The sum over the steps of each prefix of what `of` gives for a step."""
        stream, seed = self.question.stream, self.question.seed
        key, size = jnp.asarray(random.root(seed)), self.question.problem.parameters
        most = max(1, min(STEPS, NUMBERS // size**2))
        total: Any = 0.0
        done = 0
        while done < self.prefixes[-1]:
            last = min(done + most, self.prefixes[-1])
            with jax.enable_x64(True):
                problem = cast(self.question.problem, "float64")
                world = replay.given(stream, seed, done + 1, last, "float64")
                steps = jnp.arange(done + 1, last + 1)
                each = jax.device_get(of(problem, key, *world, steps, *given))
            before = total
            running = jax.tree.map(lambda x: np.cumsum(x, axis=0), each)
            if done:
                running = jax.tree.map(np.add, running, before)
            for t in self.prefixes:
                if done < t <= last:
                    yield jax.tree.map(lambda x, place=t - done - 1: x[place], running)
            total, done = jax.tree.map(lambda x: x[-1], running), last


@partial(jax.jit, static_argnames=("clients", "expected"))
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
) -> tuple[Form, Any]:
    """For each step, the mean of the clients' forms, and that of the sizes of their linear parts."""
    ks = jnp.arange(clients)

    def step(pieces: Any, t: Any) -> tuple[Form, Any]:
        if expected:
            forms = jax.vmap(lambda k: sampler.expected(t, k))(ks)
        else:
            seen, here = replay.seen(problem, sampler, key, drawn, pieces, t, ks)
            forms = jax.vmap(Form.times)(jax.vmap(problem.form)(seen), here)
        means = Form(*(jnp.mean(part, axis=0) for part in forms))
        return means, jnp.mean(abs(forms.vector), axis=0)

    return jax.vmap(step)(pieces, steps)


@partial(jax.jit, static_argnames="clients")
def _losses(
    problem: Problem,
    key: Any,
    sampler: Sampler,
    drawn: Any,
    pieces: Any,
    steps: Any,
    centre: Any,
    *,
    clients: int,
) -> tuple[Any, Any]:
    """For each step, the mean of the clients' losses at `centre`, and that of their gradients."""
    vectors, ks = Flat(problem), jnp.arange(clients)

    def one(seen: Any, here: Any) -> tuple[Any, Any]:
        value, gradient = jax.value_and_grad(vectors.loss)(centre, seen)
        return here * value, here * gradient

    def step(given: Any) -> tuple[Any, Any]:
        pieces, t = given
        seen, here = replay.seen(problem, sampler, key, drawn, pieces, t, ks)
        return jax.tree.map(lambda x: jnp.mean(x, axis=0), jax.vmap(one)(seen, here))

    return jax.lax.map(step, (pieces, steps))


class _Dealt:
    """Losses of known samples, of which each occurs with a frequency."""

    def __init__(self, question: Question, prefixes: list[int]):
        rows, self.weights = weighted(question, prefixes)
        self.prefixes, self.terms = prefixes, len(self.weights[0])
        with jax.enable_x64(True):
            self.objective = _Objective(question.problem, rows)

    def about_zero(self) -> list[QuadraticSum]:
        """The sums about 0, from the derivatives there."""
        zero, found = np.zeros(self.objective.size), []
        with jax.enable_x64(True):
            for t, weight in zip(self.prefixes, self.weights, strict=True):
                value, gradient = self.objective.at(zero, weight)
                sizes = self.objective.sizes(zero, weight)[1]
                curve = self.objective.curve(zero, weight)
                found.append(about_zero(t * curve, -t * gradient, t * value, self.terms, t * sizes))
        return found

    def about(self, sums: list[QuadraticSum], centre: np.ndarray) -> list[QuadraticSum]:
        """The sums about another point, from the values and gradients there."""
        found = []
        with jax.enable_x64(True):
            for t, weight, each in zip(self.prefixes, self.weights, sums, strict=True):
                value, gradient = self.objective.at(centre, weight)
                found.append(each.about(centre, t * value, t * gradient, self.terms))
        return found


def _isotropic(question: Question, sums: list[QuadraticSum]) -> Hindsight:
    """The best models of many prefixes at once, if A is a multiple of I: the minimiser is a projection."""
    domain, centre = question.domain, sums[0].centre
    scale, values = (np.array([getattr(s, name) for s in sums]) for name in ("matrix", "value"))
    slopes = np.stack([each.gradient for each in sums])
    if not scale.all():
        if not domain.bounded:
            raise BadData("regret: linear losses have no best model on an unbounded domain")
        points = np.eye(slopes.shape[1])[np.argmin(slopes, axis=1)]
    else:
        with jax.enable_x64(True):
            free = jnp.asarray(centre - slopes / scale[:, None])
            points = np.asarray(jax.vmap(domain.project)(free))
    moved = points - centre
    values = values + np.sum(moved * (scale[:, None] * moved / 2 + slopes), axis=1)
    found = [
        2 * decompose(each).errors(point, 0.0)[0] for each, point in zip(sums, points, strict=True)
    ]
    where = "over everything" if domain.whole else f"in the {domain.title}"
    return Hindsight(values, np.array(found), points, f"best {where}")


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
            solutions.append(found.times(prefix))
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


class _Objective:
    """The weighted mean loss over the rows, in float64, with its derivatives."""

    def __init__(self, problem: Problem, rows: Sample):
        self.size = problem.parameters
        self._widest = _widest(rows.shown)  # of the features
        vectors = Flat(problem)
        rows = jax.tree.map(jnp.asarray, cast(rows, "float64"))

        def seen(sample: Sample) -> Any:
            at = At(jnp.int32(1), jnp.int32(0), jnp.zeros(2, jnp.uint32))
            decision = vectors.decide(vectors.init(at.key), sample.shown, at)
            return vectors.reveal(decision, sample)

        def mean(params: Any, weights: Any, rows: Any) -> Any:
            losses = jax.vmap(lambda sample: vectors.loss(params, seen(sample)))(rows)
            return weights @ losses

        def sizes(params: Any, weights: Any, rows: Any) -> Any:
            def add(total: Any, given: Any) -> tuple[Any, None]:
                sample, weight = given
                each = jax.value_and_grad(lambda params: vectors.loss(params, seen(sample)))(params)
                return jax.tree.map(lambda x, y: x + weight * abs(y), total, each), None

            return jax.lax.scan(add, (0.0, jnp.zeros_like(params)), (rows, weights))[0]

        gradient = jax.jit(jax.value_and_grad(mean))
        hessian = jax.jit(jax.hessian(mean))
        summed = jax.jit(sizes)
        self._gradient = lambda params, weights: gradient(params, weights, rows)
        self._hessian = lambda params, weights: hessian(params, weights, rows)
        self._sizes = lambda params, weights: summed(params, weights, rows)

    def at(self, params: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient."""
        value, gradient = self._gradient(params, weights)
        return float(value), np.asarray(gradient, np.float64)

    def sizes(self, params: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """The weighted mean of the absolute losses, and that of the absolute gradients."""
        value, gradient = self._sizes(jnp.asarray(params), jnp.asarray(weights))
        return float(value), np.asarray(gradient, np.float64)

    def errors(self, params: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """Bounds on the rounding errors of value and gradient.

        Each loss is computed as if its model were off by `each` ulp, entry by entry, and all are summed up. The
        second derivatives in the scores are at most the first ones, as for logistic and softmax losses.
        """
        value, slope = self.sizes(params, weights)
        each, total = (8 + params.size) * EPS, (32 + len(weights)) * EPS
        scores = self._widest * float(abs(params).max(initial=0))
        wrong = total * value + each * float(abs(params) @ slope)
        return wrong, (total + each * (1 + scores)) * slope

    def curve(self, params: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The matrix of second derivatives."""
        return np.asarray(self._hessian(params, weights), np.float64)


def _widest(shown: Any) -> float:
    """The largest sum of absolute features of a sample, with an intercept."""
    leaves = [np.abs(np.asarray(x, np.float64)) for x in jax.tree.leaves(shown)]
    return 1 + sum(float(x.reshape(len(x), -1).sum(axis=1).max(initial=0)) for x in leaves)


def _minimised(
    question: Question, objective: _Objective, weight: np.ndarray, start: np.ndarray
) -> Solution:
    problem = question.problem
    if not problem.convex:
        found = scipy.optimize.minimize(
            objective.at, start, (weight,), "L-BFGS-B", True, options={"maxiter": 200}
        )
        return Solution(found.x, float(found.fun), math.inf, FOUND, UNPROVEN)
    return minimise(
        lambda params: objective.at(params, weight),
        start,
        question.domain,
        curvature=float(problem.curvature),
        hessian=(lambda params: objective.curve(params, weight))
        if objective.size <= HESSIAN
        else None,
        radius=question.radius,
        verified=lambda params, _: objective.errors(params, weight),
    )


def solved(solutions: list[Solution]) -> Hindsight:
    last = solutions[-1]
    values, gaps = (np.array([getattr(s, name) for s in solutions]) for name in ("value", "gap"))
    return Hindsight(values, gaps, np.stack([s.params for s in solutions]), last.title, last.note)
