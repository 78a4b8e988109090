"""The best fixed model in hindsight for quadratic losses, from their sums: in closed form where there is one."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import random, replay
from mainstem.base import Flat, Form, Problem, Sampler, cast
from mainstem.errors import BadData
from mainstem.measure.quadratic_solver import decompose, minimise_sum
from mainstem.measure.quadratic_sums import QuadraticSum, about_zero
from mainstem.measure.question import Hindsight, Question, solved
from mainstem.measure.weighted_losses import STEPS, WeightedLoss, weighted

NUMBERS = 2**24  # of all forms that may be in memory at once
PRECISE = 1e-9  # a relative gap below which sums about 0 are precise enough


class _Losses(Protocol):
    """The quadratic losses of a stream, summed for each prefix."""

    def about_zero(self) -> list[QuadraticSum]:
        """The sums about 0."""

    def about(self, sums: list[QuadraticSum], centre: np.ndarray) -> list[QuadraticSum]:
        """The same sums about another point."""


def best_quadratic(question: Question, losses: _Losses) -> Hindsight:
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


class Replayed(NamedTuple):
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


class Dealt:
    """Losses of known samples, of which each occurs with a frequency."""

    def __init__(self, question: Question, prefixes: list[int]):
        rows, self.weights = weighted(question, prefixes)
        self.prefixes, self.terms = prefixes, len(self.weights[0])
        with jax.enable_x64(True):
            self.objective = WeightedLoss(question.problem, rows)

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
