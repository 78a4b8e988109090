"""Classification by a linear function for each class."""

import jax
import numpy as np
import pytest
from scipy.special import logsumexp

from mainstem.problems import softmax
from tests.problems.slopes import AT, check_gradient, draw


@pytest.mark.parametrize("ridge", [0.0, 0.2])
def test_loss_is_the_cross_entropy_and_the_ridge(ridge):
    problem = softmax(4, 3, ridge=ridge)
    rng = np.random.default_rng(1)
    params = {"weights": rng.normal(size=(4, 3)), "bias": rng.normal(size=3)}
    for label in range(3):
        seen = draw(4, label=label)
        scores = seen.shown @ params["weights"] + params["bias"]
        squares = sum(np.sum(leaf**2) for leaf in params.values())
        expected = logsumexp(scores) - scores[label] + ridge / 2 * squares
        with jax.enable_x64(True):
            np.testing.assert_allclose(problem.loss(params, seen), expected, rtol=1e-12)
            decision = problem.decide(params, seen.shown, AT)
            assert problem.metrics(decision, seen)["correct"] == (np.argmax(scores) == label)


def test_gradient():
    check_gradient(softmax(4, 3, ridge=0.1), draw(4, label=2))


def test_size():
    assert softmax(64, 10).parameters == 650
    assert softmax(64, 10, ridge=0.5).curvature == 0.5
