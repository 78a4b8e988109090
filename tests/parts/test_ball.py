"""Minima in a ball against their optimality conditions and CVXPY."""

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainstem.parts import ball

D = 4
quadratic = jax.jit(ball.quadratic)
least_squares = jax.jit(ball.least_squares, static_argnums=3)
free = jax.jit(lambda matrix, vector, current: ball.quadratic(matrix, vector, current, None))


def logistic(weights, features, signs, shift):
    """A mean of logistic losses, with what somebody else predicts as a shift."""
    return jnp.mean(jax.nn.softplus(-signs * (features @ weights + shift)))


@jax.jit
def minimised(features, signs, shift, start, radius):
    return ball.minimise(lambda w: logistic(w, features, signs, shift), start, radius)


def minimum(features, signs, shift, start, radius):
    """`ball.minimise` in float64: the point, its value in NumPy and the gap."""
    with jax.enable_x64(True):
        point, gap = jax.device_get(minimised(features, signs, shift, start, np.float64(radius)))
    value = np.mean(np.logaddexp(0, -signs * (features @ point + shift)))
    assert np.linalg.norm(point) <= radius * (1 + 1e-12)
    return point, value, gap


def draw(seed, rank):
    """A semidefinite matrix of a whole-numbered root, a vector in its range and a current model."""
    rng = np.random.default_rng(seed)
    root = rng.integers(-3, 4, size=(rank, D)).astype(float)
    matrix, target = root.T @ root, rng.normal(size=D)
    return matrix, matrix @ target, rng.normal(size=D)


given_forms = given(seed=st.integers(0, 2**32 - 1), rank=st.integers(0, D))
modest = settings(max_examples=60, deadline=None, derandomize=True)


@modest
@given_forms
def test_everywhere_it_is_the_minimiser_nearest_the_current_model(seed, rank):
    """w solves Aw = b, and w - current has no part along which nothing changes."""
    matrix, vector, current = draw(seed, rank)
    with jax.enable_x64(True):
        found = np.asarray(free(matrix, vector, current))
    np.testing.assert_allclose(matrix @ found, vector, atol=1e-8 * max(1, abs(vector).max()))
    expected = current + np.linalg.pinv(matrix, hermitian=True) @ (vector - matrix @ current)
    np.testing.assert_allclose(found, expected, atol=1e-8)


@modest
@given_forms
def test_least_squares_is_the_quadratic_of_its_rows(seed, rank):
    rng = np.random.default_rng(seed)
    rows = np.zeros((D, D))
    rows[:rank] = rng.integers(-3, 4, size=(rank, D))
    targets, current = rng.normal(size=D), rng.normal(size=D)
    with jax.enable_x64(True):
        for radius in (None, 0.5):
            found = least_squares(rows, targets, current, radius)
            form = rows.T @ rows, rows.T @ targets, current
            same = free(*form) if radius is None else quadratic(*form, radius)
            np.testing.assert_allclose(found, same, atol=1e-8)


@modest
@given_forms
def test_in_a_ball_it_meets_the_optimality_conditions(seed, rank):
    """(A + mI)w = b with m >= 0, and m > 0 only on the sphere: sufficient, and necessary."""
    matrix, vector, current = draw(seed, rank)
    least = np.linalg.norm(np.linalg.pinv(matrix, hermitian=True) @ vector)
    for radius in (0.3 * least + 1e-3, 3 * least + 0.1):  # active, and inactive
        with jax.enable_x64(True):
            found = np.asarray(quadratic(matrix, vector, current, radius))
        scale = 1e-8 * max(1.0, abs(vector).max())
        slope, length = matrix @ found - vector, np.linalg.norm(found)
        multiplier = -slope @ found / max(length**2, 1e-300)
        assert length <= radius * (1 + 1e-12)
        assert multiplier >= -scale
        np.testing.assert_allclose(slope, -multiplier * found, atol=scale)
        if multiplier > scale:
            np.testing.assert_allclose(length, radius, rtol=1e-12)
        assert (radius > least) == (multiplier <= scale)


@modest
@given_forms
def test_of_many_minimisers_in_a_ball_it_is_the_nearest(seed, rank):
    """A rival is another minimiser: from w along a direction in which nothing changes."""
    matrix, vector, current = draw(seed, rank)
    least = np.linalg.norm(np.linalg.pinv(matrix, hermitian=True) @ vector)
    with jax.enable_x64(True):
        found = np.asarray(quadratic(matrix, vector, 3 * current, radius := 1.2 * least + 0.5))
    eigenvalues, basis = np.linalg.eigh(matrix)
    level = basis[:, eigenvalues < 1e-9 * max(eigenvalues.max(), 1)]
    rng = np.random.default_rng(seed)
    for size in (1.0, 1e-3):
        rivals = found + size * rng.normal(size=(20, level.shape[1])) @ level.T
        inside = np.linalg.norm(rivals, axis=1) <= radius
        away = np.linalg.norm(rivals[inside] - 3 * current, axis=1)
        assert np.all(away >= np.linalg.norm(found - 3 * current) - 1e-9)


def test_nothing_known_leaves_the_current_model_projected():
    zero, current = np.zeros((D, D)), np.array([3.0, 0.0, 4.0, 0.0])
    with jax.enable_x64(True):
        np.testing.assert_allclose(free(zero, zero[0], current), current)
        np.testing.assert_allclose(quadratic(zero, zero[0], current, 1.0), current / 5, rtol=1e-15)


def rows(seed, scale=1.0, count=12):
    rng = np.random.default_rng(seed)
    features, signs = rng.normal(size=(count, D)) * scale, rng.choice([-1.0, 1.0], count)
    return features, signs, 0.5 * rng.normal(size=count), rng.normal(size=D)


@pytest.mark.parametrize("radius", [0.2, 2.0, 50.0])
@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_logistic_losses_agree_with_cvxpy(scale, radius):
    """Active and inactive, from a start inside and from one outside; never below the certificate."""
    features, signs, shift, start = rows(int(10 * radius + scale), scale)
    w = cp.Variable(D)
    loss = cp.sum(cp.logistic(cp.multiply(-signs, features @ w + shift))) / len(signs)
    tight = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
    oracle = cp.Problem(cp.Minimize(loss), [cp.norm(w, 2) <= radius])
    best = oracle.solve(solver=cp.CLARABEL, **tight)
    for first in (np.zeros(D), 100 * start):
        _, value, gap = minimum(features, signs, shift, first, radius)
        assert abs(value - best) <= 1e-8
        assert value - best <= max(gap, 0) + 1e-9  # CVXPY's own error
        assert gap <= 1e-12 * max(1.0, radius * scale)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-3, 0.1, 1.0, 30.0, 1e3]),
    radius=st.sampled_from([1e-2, 1.0, 30.0]),
)
def test_no_rival_beats_the_certificate(seed, scale, radius):
    """Random points of the ball, and points around the answer, are never better than is proven."""
    features, signs, shift, start = rows(seed, scale)
    point, value, gap = minimum(features, signs, shift, start, radius)
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(60, D))
    sizes = radius * 10 ** rng.uniform(-6, 0.5, size=(60, 1))
    rivals = np.concatenate([directions * sizes, point + directions * sizes])
    rivals *= np.minimum(1, radius / np.linalg.norm(rivals, axis=1, keepdims=True))
    values = np.mean(np.logaddexp(0, -signs * (rivals @ features.T + shift)), axis=1)
    assert value - values.min() <= max(gap, 0) + 1e-13 * max(1, value)
    assert gap <= 1e-9 * max(1.0, radius * scale)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_it_gets_away_from_where_losses_have_a_slope_but_no_curvature(dtype):
    """Deep on the wrong side sigmoid(s) is 1 to the last bit, and s(1 - s) exactly zero."""
    features = np.tile(100 * np.eye(D)[:2], (6, 1)).astype(dtype)
    signs, shift, start = (np.array(x, dtype) for x in (np.ones(12), np.zeros(12), [-3, -4, 0, 0]))
    assert np.all(1 / (1 + np.exp(features @ start)) == 1)
    with jax.enable_x64(dtype == "float64"):
        found = jax.device_get(minimised(features, signs, shift, start, np.asarray(5, dtype)))
    assert np.all(features @ found.params > 100)
    assert found.gap <= 1e-6
