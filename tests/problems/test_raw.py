"""Problems whose hidden part is the loss itself."""

import jax
import numpy as np
import pytest

from mainstem import random
from mainstem.base import Sample
from mainstem.errors import BadData
from mainstem.problems import experts, quadratic
from tests.problems.slopes import AT, check_form, check_gradient


@pytest.mark.parametrize("curvature", [1.0, 3.0])
def test_quadratic_is_half_the_weighted_distance(curvature):
    problem = quadratic(4, curvature=curvature)
    target = np.random.default_rng(0).normal(size=4)
    with jax.enable_x64(True):
        loss = problem.loss(np.ones(4), target)
    np.testing.assert_allclose(loss, curvature / 2 * np.sum((1 - target) ** 2), rtol=1e-14)
    check_gradient(problem, target)
    check_form(problem, target)
    assert problem.curvature == curvature


def test_experts_pay_the_mixture_of_the_losses():
    losses = np.random.default_rng(0).random(4)
    mixture = np.array([0.1, 0.2, 0.3, 0.4])
    with jax.enable_x64(True):
        np.testing.assert_allclose(experts(4).loss(mixture, losses), mixture @ losses, rtol=1e-14)
    check_gradient(experts(4), losses)
    check_form(experts(4), losses)
    assert experts(4).curvature == 0
    np.testing.assert_allclose(experts(4).init(random.root(0)), np.full(4, 0.25))


def test_the_decision_is_the_model_and_the_loss_is_revealed():
    sample = Sample((), np.ones(4))
    for problem in (quadratic(4), experts(4)):
        assert problem.decide(mixture := np.arange(4), (), AT) is mixture
        assert problem.reveal(mixture, sample) is sample.hidden
        assert problem.metrics(mixture, sample) == {}
        assert problem.parameters == 4
        assert problem.convex


def test_domains():
    assert quadratic(4).domain.title == "everything"
    assert quadratic(4, low=-3, high=3).domain.title == "box [-3, 3]"
    assert experts(4).domain.title == "simplex"
    np.testing.assert_array_equal(quadratic(2, low=1, high=3).init(random.root(0)), [1, 1])


@pytest.mark.parametrize("problem", [quadratic(4), experts(4)], ids=["quadratic", "experts"])
def test_hidden_vectors_of_another_length_are_refused(problem):
    problem.check((), np.zeros((7, 4)))
    with pytest.raises(
        BadData, match=r"wants hidden vectors of length 4, the stream has shape \(5,\)"
    ):
        problem.check((), np.zeros((7, 5)))
