"""Checks of losses, mirror steps, codecs and merges against definitions and SciPy."""

import numpy as np
import pytest
from scipy.optimize import minimize

from .instances import drawn
from .parts import mean_of, mirror_step, on_simplex, p_norm_map, quantised, sum_of, travel
from .problems import gradient, loss, own_gradient, residual, shared_gradient

PROBLEMS = [
    {"name": "quadratic", "curvature": 1.7},
    {"name": "linear", "ridge": 0.3, "intercept": True},
    {"name": "linear", "ridge": 0.0, "intercept": False},
    {"name": "logistic", "ridge": 0.2, "intercept": True},
    {"name": "softmax", "classes": 3, "ridge": 0.1, "intercept": True},
    {"name": "softmax", "classes": 3, "ridge": 0.1, "intercept": False},
]


def slope(function, point):
    """Central differences, exact for quadratics and good to 1e-9 otherwise."""
    shifts = 1e-5 * np.eye(point.size)
    return np.array([(function(point + h) - function(point - h)) / 2e-5 for h in shifts])


@pytest.mark.parametrize("problem", PROBLEMS)
def test_gradients_are_those_of_the_losses(problem):
    rng = np.random.default_rng(0)
    data, size = drawn(problem, rng, (5,))
    batch = list(zip(data.get("x", [None] * 5), data["y"], strict=True))
    params = rng.normal(size=size)
    expected = slope(lambda p: loss(problem, p, batch), params)
    np.testing.assert_allclose(gradient(problem, params, batch), expected, atol=1e-8)


def test_a_softmax_of_two_classes_is_logistic():
    rng = np.random.default_rng(1)
    data, size = drawn({"name": "logistic", "intercept": True}, rng, (6,))
    batch = list(zip(data["x"], data["y"], strict=True))
    params = rng.normal(size=size)
    rolled = np.roll(params, 1)  # softmax has its intercept first
    table = np.stack([np.zeros(size), rolled], axis=1).ravel()  # z_1 - z_0 = z
    softmax = {"name": "softmax", "classes": 2, "intercept": True}
    logistic = {"name": "logistic", "intercept": True}
    assert loss(softmax, table, batch) == pytest.approx(loss(logistic, params, batch), rel=1e-12)


def test_gradients_of_the_personal_loss():
    rng = np.random.default_rng(2)
    shared, own, xg, xl = (rng.normal(size=n) for n in (2, 3, 2, 3))
    by_shared = slope(lambda w: residual(w, xl @ own, xg, 0.7) ** 2, shared)
    by_own = slope(lambda v: residual(shared, xl @ v, xg, 0.7) ** 2, own)
    np.testing.assert_allclose(shared_gradient(shared, xl @ own, xg, 0.7), by_shared, atol=1e-8)
    np.testing.assert_allclose(own_gradient(shared, own, xg, xl, 0.7), by_own, atol=1e-8)


def entropy_divergence(y, x):
    return np.sum(y * np.log(y / x) - y + x)


def test_entropic_steps_minimise_equation_3():
    x = np.array([0.1, 0.2, 0.3, 0.4])
    g = np.array([1.0, -0.5, 0.2, 0.0])

    def objective(y):
        return g @ y + entropy_divergence(y, x) / 0.6

    simplex = minimize(
        objective,
        x,
        method="SLSQP",
        bounds=[(1e-9, 1.0)] * 4,
        constraints={"type": "eq", "fun": lambda y: y.sum() - 1.0},
        options={"ftol": 1e-14},
    )
    mirror = {"map": "entropy", "domain": {"name": "simplex"}}
    np.testing.assert_allclose(mirror_step(mirror, x, g, 0.6), simplex.x, atol=1e-6)
    box = minimize(objective, x, bounds=[(0.15, 0.35)] * 4, options={"ftol": 1e-14})
    mirror = {"map": "entropy", "domain": {"name": "box", "low": 0.15, "high": 0.35}}
    np.testing.assert_allclose(mirror_step(mirror, x, g, 0.6), box.x, atol=1e-6)


def test_p_norm_steps_minimise_equation_3():
    x, g, p = np.array([0.5, -1.0, 0.3]), np.array([1.0, 0.4, -0.7]), 1.5

    def divergence(y):
        half = [np.sum(np.abs(v) ** p) ** (2.0 / p) / 2.0 for v in (y, x)]
        return half[0] - half[1] - p_norm_map(x, p) @ (y - x)

    found = minimize(lambda y: g @ y + divergence(y) / 0.3, x, method="BFGS", tol=1e-9)
    mirror = {"map": "p_norm", "p": p, "domain": {"name": "everything"}}
    np.testing.assert_allclose(mirror_step(mirror, x, g, 0.3), found.x, atol=1e-5)


def test_the_simplex_projection_meets_its_optimality_conditions():
    for seed in range(20):
        point = np.random.default_rng(seed).normal(size=5)
        nearest = on_simplex(point)
        gap = (point - nearest)[nearest > 0]
        assert nearest.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(gap, gap[0], atol=1e-12)
        assert np.all((point - nearest)[nearest == 0] <= gap[0] + 1e-12)


def test_the_quantiser_is_unbiased_over_a_grid_of_uniform_numbers():
    body = np.array([0.3, -1.2, 0.0, 2.0, -0.4])
    codec = {"levels": 3, "blocks": 2}
    grid = (np.arange(4000) + 0.5) / 4000
    mean = np.mean([quantised(codec, body, np.full(5, u)) for u in grid], axis=0)
    np.testing.assert_allclose(mean, body, atol=1e-3)


def test_codecs_and_the_median():
    body = np.array([0.1, -3.0, 2.0, 1e6])
    half = travel({"name": "half"}, body, 1, 0)
    np.testing.assert_array_equal(half, [float(np.float16(0.1)), -3.0, 2.0, 65504.0])
    top = travel({"name": "top_k", "count": 2}, body, 1, 0)
    np.testing.assert_array_equal(top, [0.0, -3.0, 0.0, 1e6])
    bodies = [np.array([1.0, 5.0]), np.array([2.0, 0.0]), np.array([9.0, 1.0])]
    np.testing.assert_array_equal(sum_of({"name": "median"}, bodies, [1.0, 1.0, 2.0]), [8.0, 4.0])
    np.testing.assert_allclose(mean_of({"name": "total"}, bodies, [1.0, 1.0, 2.0]), [5.25, 1.75])
