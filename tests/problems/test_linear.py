"""Least squares."""

import jax
import numpy as np
import pytest

from mainstem import parts
from mainstem.problems import linear
from tests.problems.slopes import AT, check_form, check_gradient, draw

CASES = [(ridge, intercept) for ridge in (0.0, 0.3) for intercept in (False, True)]


@pytest.mark.parametrize(("ridge", "intercept"), CASES)
def test_loss_is_half_the_squared_error_and_the_ridge(ridge, intercept):
    problem = linear(4, ridge=ridge, intercept=intercept)
    seen = draw(4)
    w = np.random.default_rng(1).normal(size=problem.parameters)
    prediction = seen.shown @ w[:4] + (w[4] if intercept else 0)
    with jax.enable_x64(True):
        loss, scores = problem.loss(w, seen), problem.decide(w, seen.shown, AT)
        metrics = problem.metrics(scores, seen)
    expected = (prediction - seen.hidden) ** 2 / 2 + ridge / 2 * w @ w
    np.testing.assert_allclose(loss, expected, rtol=1e-13)
    np.testing.assert_allclose(scores, prediction, rtol=1e-13)
    np.testing.assert_allclose(metrics["squared_error"], (prediction - seen.hidden) ** 2)


@pytest.mark.parametrize(("ridge", "intercept"), CASES)
def test_gradient(ridge, intercept):
    check_gradient(linear(4, ridge=ridge, intercept=intercept), draw(4))


@pytest.mark.parametrize(("ridge", "intercept"), CASES)
def test_form_is_the_loss(ridge, intercept):
    check_form(linear(4, ridge=ridge, intercept=intercept), draw(4))


def test_size_curvature_and_domain():
    assert linear(5).parameters == 6
    assert linear(5, intercept=False).parameters == 5
    assert linear(5, ridge=0.3).curvature == 0.3
    assert linear(5).convex
    assert linear(5).domain.title == "everything"
    assert linear(5, domain=parts.l2_ball(2)).domain.title == "l2 ball of radius 2"
