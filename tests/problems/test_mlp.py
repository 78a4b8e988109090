"""Perceptrons."""

import jax
import numpy as np
import pytest

from mainstem import random
from mainstem.base import Sample
from mainstem.problems import mlp
from tests.problems.slopes import check_gradient, draw


def test_sizes():
    """Two layers of 64 units with the real input width (Kwon et al. 2023, Section 5)."""
    assert mlp(5).parameters == 4609
    assert mlp(5).parameters == (5 + 1) * 64 + (64 + 1) * 64 + (64 + 1)
    assert mlp(16, classes=4, hidden=(8,)).parameters == 17 * 8 + 9 * 4
    assert mlp(3, hidden=()).parameters == 4


@pytest.mark.parametrize("classes", [None, 3])
def test_gradient(classes):
    problem = mlp(3, classes=classes, hidden=(5, 4), ridge=0.1)
    check_gradient(problem, draw(3, label=None if classes is None else 1), spread=0.7)


def test_regression_by_hand():
    """Layers of NumPy; half the squared error."""
    problem = mlp(3, hidden=(5, 4))
    seen = draw(3)._replace(hidden=np.float64(0.7))
    with jax.enable_x64(True):
        params = jax.device_get(jax.jit(problem.init)(random.root(2)))
        x = seen.shown
        for layer in params[:-1]:
            x = np.maximum(x @ layer["weights"] + layer["bias"], 0)
        score = (x @ params[-1]["weights"] + params[-1]["bias"])[0]
        np.testing.assert_allclose(
            problem.loss(params, seen), (score - seen.hidden) ** 2 / 2, rtol=1e-12
        )


def test_no_hidden_layer_is_linear_regression():
    problem = mlp(3, hidden=())
    layer = {"weights": np.array([[1.0], [2.0], [3.0]], np.float32), "bias": np.ones(1, np.float32)}
    seen = Sample(np.array([1.0, 0.5, -1.0], np.float32), np.float32(2.0))
    assert float(problem.loss([layer], seen)) == pytest.approx((1 + 1 - 3 + 1 - 2) ** 2 / 2)


def test_first_weights_are_hes():
    """Variance 2 / inputs, no bias, and layers that differ."""
    first, second, _ = jax.device_get(jax.jit(mlp(200, hidden=(100, 100)).init)(random.root(0)))
    assert first["weights"].var() == pytest.approx(2 / 200, rel=0.05)
    assert second["weights"].var() == pytest.approx(2 / 100, rel=0.05)
    assert not first["bias"].any()
    likeness = np.corrcoef(first["weights"][:100].ravel(), second["weights"].ravel())[0, 1]
    assert abs(likeness) < 4.5 / 100
