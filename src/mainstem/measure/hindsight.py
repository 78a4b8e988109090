"""The best fixed model in hindsight, for any prefix of a stream, in a domain.

Quadratic losses are summed as forms and minimised in closed form. Other convex losses are minimised
with a certificate. For non-convex losses the best model found is returned without a certificate.
Values are sums over steps of means over clients, the units of Mitra et al. 2021, eq. (2).
"""

import math
from collections.abc import Sequence

import jax
import numpy as np
import scipy.optimize

from mainstem.measure.certificate import Solution
from mainstem.measure.newton import Model
from mainstem.measure.quadratic_hindsight import Dealt, Replayed, best_quadratic
from mainstem.measure.question import Hindsight, Question, solved
from mainstem.measure.solver import minimise
from mainstem.measure.weighted_losses import WeightedLoss, weighted

HESSIAN = 1000  # largest number of parameters for which second derivatives are used
FOUND = "best found by L-BFGS from the run's final model"
UNPROVEN = ", without a certificate: the loss is not declared convex"
ASSUMED = ", if the loss is convex as declared and exact to {:.0f} digits"


def best_fixed(question: Question, prefixes: Sequence[int]) -> Hindsight:
    """The best fixed model for each of the prefixes, given by their numbers of steps."""
    problem, rows = question.problem, question.stream.rows()
    if question.expected or (problem.form is not None and rows is None):
        return best_quadratic(question, Replayed(question, list(prefixes)))
    if problem.form is not None and problem.parameters <= HESSIAN:
        return best_quadratic(question, Dealt(question, list(prefixes)))
    return _by_rows(question, list(prefixes))


def _by_rows(question: Question, prefixes: list[int]) -> Hindsight:
    """The best models, from the distinct samples and their frequencies."""
    rows, weights = weighted(question, prefixes)
    with jax.enable_x64(True):
        objective = WeightedLoss(question.problem, rows)
        solutions = []
        start, model = np.asarray(question.start, np.float64), None
        for prefix, weight in zip(prefixes, weights, strict=True):
            found = _minimised(question, objective, weight, start, model)
            solutions.append(found.times(prefix))
            start, model = found.params, found.model
    return solved(solutions)


def _minimised(
    question: Question,
    objective: WeightedLoss,
    weight: np.ndarray,
    start: np.ndarray,
    model: Model | None,
) -> Solution:
    problem = question.problem
    if not problem.convex:
        found = scipy.optimize.minimize(
            objective.at, start, (weight,), "L-BFGS-B", True, options={"maxiter": 200}
        )
        return Solution(found.x, float(found.fun), math.inf, FOUND, UNPROVEN)
    found = minimise(
        lambda params: objective.at(params, weight),
        start,
        question.domain,
        curvature=float(problem.curvature),
        hessian=(lambda params: objective.curve(params, weight))
        if objective.size <= HESSIAN
        else None,
        radius=question.radius,
        verified=lambda params, _: objective.errors(params, weight),
        model=model,
    )
    if problem.rounding is None:
        return found
    return found._replace(note=ASSUMED.format(-math.log10(problem.rounding)))
