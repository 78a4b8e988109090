"""The best model of each single step: the comparator of dynamic regret, and its path length."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.base import Form, Problem
from mainstem.errors import BadData
from mainstem.measure.prefix import Prefix
from mainstem.measure.quadratic_solver import minimise_sum
from mainstem.measure.quadratic_sums import about_zero
from mainstem.measure.question import Hindsight, Question


def minima(forms: Form, question: Question) -> Hindsight:
    """The best model in the domain for each of several quadratic losses."""
    domain, clients = question.domain, question.stream.clients
    sums = (about_zero(a, b, float(c), clients) for a, b, c in zip(*forms, strict=True))
    found = [minimise_sum(each, domain, radius=question.radius) for each in sums]
    values, gaps = (np.array([getattr(each, name) for each in found]) for name in ("value", "gap"))
    points = np.stack([each.params for each in found])
    return Hindsight(values, gaps, points, "best model of each step")


def step_minima(prefix: Prefix) -> Hindsight:
    """For each step, the best model for the mean loss of all clients."""
    if prefix.problem.form is None:
        raise BadData(
            "the best model of a step: wants quadratic losses, whose minimisers are known"
        )
    return minima(prefix.by_step(_mean_form(prefix.problem)), prefix.question)


@functools.lru_cache(maxsize=16)
def _mean_form(problem: Problem) -> Callable[[Any, Any], Form]:
    assert problem.form is not None
    form = problem.form

    def of(seen: Any, here: Any) -> Form:
        forms = jax.vmap(Form.times)(jax.vmap(form)(seen), here)
        return Form(*(jnp.mean(part, axis=0) for part in forms))

    return of


def best_each(question: Question, prefixes: Sequence[int]) -> Hindsight:
    """Sums of the smallest loss of each step, over the steps of each prefix."""
    prefix = Prefix(
        question.problem,
        question.stream,
        max(prefixes),
        seed=question.seed,
        domain=question.domain,
        radius=question.radius,
    )
    found, last = step_minima(prefix), np.asarray(prefixes) - 1
    return found._replace(
        values=np.cumsum(found.values)[last],
        gaps=np.cumsum(found.gaps)[last],
        points=found.points[last],
    )


def path_length(prefix: Prefix) -> float:
    """The path length of the best models of the steps: the sum of |x*_{t+1} - x*_t|.

    For the drawn losses; `heterogeneity(prefix).minimisers` are the best models for the expected losses.
    Steps at which no client has a sample are skipped.
    """
    present = prefix.by_step(_present)
    points = step_minima(prefix).points[present > 0]
    return float(np.sum(np.linalg.norm(np.diff(points, axis=0), axis=1)))


def _present(seen: Any, here: Any) -> Any:
    return jnp.sum(here)
