"""Binary classification."""

import jax
import numpy as np
import pytest

from mainstem.problems import logistic
from tests.problems.slopes import AT, check_gradient, draw

CASES = [(ridge, intercept) for ridge in (0.0, 0.3) for intercept in (False, True)]


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize(("ridge", "intercept"), CASES)
def test_loss_is_the_log_likelihood_and_the_ridge(label, ridge, intercept):
    problem = logistic(4, ridge=ridge, intercept=intercept)
    seen = draw(4, label=label)
    w = np.random.default_rng(1).normal(size=problem.parameters)
    score = seen.shown @ w[:4] + (w[4] if intercept else 0)
    likelihood = 1 / (1 + np.exp(-score if label else score))
    with jax.enable_x64(True):
        loss = problem.loss(w, seen)
        decision = problem.decide(w, seen.shown, AT)
        correct = problem.metrics(decision, seen)["correct"]
    np.testing.assert_allclose(loss, -np.log(likelihood) + ridge / 2 * w @ w, rtol=1e-12)
    assert float(correct) == (likelihood > 0.5)


@pytest.mark.parametrize("label", [0, 1])
def test_gradient(label):
    check_gradient(logistic(4, ridge=0.1), draw(4, label=label))


def test_large_scores_neither_overflow_nor_vanish():
    problem = logistic(1, intercept=False)
    wrong, right = draw(1, label=0), draw(1, label=1)
    wrong, right = (seen._replace(shown=np.ones(1, np.float32)) for seen in (wrong, right))
    assert float(problem.loss(np.array([1e4], np.float32), wrong)) == pytest.approx(1e4)
    assert float(problem.loss(np.array([1e4], np.float32), right)) == 0


def test_size():
    assert logistic(10).parameters == 11
    assert logistic(10, intercept=False).parameters == 10
    assert logistic(10, ridge=0.5).curvature == 0.5
