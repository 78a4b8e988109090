"""The comparator's solver: CVXPY finds the same minimum, and no rival ever beats a certificate."""

from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from mainstem.base import Domain
from mainstem.errors import BadParameter
from mainstem.measure.quadratic_solver import minimise_quadratic
from mainstem.measure.solver import minimise
from mainstem.parts import box, everything, l1_ball, l2_ball, simplex
from mainstem.value import value
from tests.thinned import thinned

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 8)
scales = st.sampled_from([2.0**-12, 1.0, 2.0**12])


def onto_simplex(w):
    """Held, Wolfe and Crowder 1974: shift until the positive parts sum to one, then clip."""
    ordered = np.sort(w)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, w.size + 1)
    return np.maximum(w - excess[np.nonzero(ordered > excess)[0][-1]], 0.0)


def nearest(name, w):
    """The point of a domain that is nearest to w, by hand."""
    if name == "everything":
        return w
    if name == "box":
        return np.clip(w, -0.2, 0.3)
    if name == "l2 ball":
        return w * min(1.0, 0.7 / np.linalg.norm(w))
    if name == "simplex":
        return onto_simplex(w)
    return w if abs(w).sum() <= 1 else np.sign(w) * onto_simplex(abs(w))


def semidefinite(rng, size, rank=None):
    root = rng.normal(size=(rank or size, size))
    return root.T @ root


def logistic(X, y, penalty=0.0):
    """Mean of log(1 + exp(-y x'w)) + penalty/2 |w|^2, with its Hessian."""

    def at(w):
        margin = y * (X @ w)
        slope = -y * np.exp(-np.logaddexp(0, margin))
        value = np.mean(np.logaddexp(0, -margin)) + penalty / 2 * w @ w
        return value, X.T @ slope / len(y) + penalty * w

    def hessian(w):
        margin = X @ w
        weight = np.exp(-np.logaddexp(0, margin) - np.logaddexp(0, -margin)) / len(y)
        return X.T @ (weight[:, None] * X) + penalty * np.eye(X.shape[1])

    return at, hessian


def softmax_on_digits(divisor):
    """Mean cross-entropy of 10 classes on 64 pixels and a constant: 650 parameters, separable."""
    images, labels = load_digits(return_X_y=True)
    X = np.hstack([images / divisor, np.ones((len(images), 1))])
    hot = np.eye(10)[labels]

    def probabilities(w):
        scores = X @ w.reshape(65, 10)
        scores -= scores.max(axis=1, keepdims=True)
        total = np.exp(scores).sum(axis=1, keepdims=True)
        return np.exp(scores) / total, np.mean(np.log(total[:, 0]) - (scores * hot).sum(axis=1))

    def at(w):
        p, value = probabilities(w)
        return value, (X.T @ (p - hot) / len(X)).ravel()

    def hessian(w):
        p, _ = probabilities(w)
        blocks = np.zeros((65, 10, 65, 10))
        for i in range(10):
            for j in range(10):
                weight = p[:, i] * ((i == j) - p[:, j]) / len(X)
                blocks[:, i, :, j] = X.T @ (weight[:, None] * X)
        return blocks.reshape(650, 650)

    return at, hessian


def inside(name, w):
    """The same domains as constraints of CVXPY."""
    return {
        "everything": [],
        "box": [w >= -0.2, w <= 0.3],
        "l2 ball": [cp.norm(w, 2) <= 0.7],
        "simplex": [w >= 0, cp.sum(w) == 1],
        "l1 ball": [cp.norm(w, 1) <= 1],
    }[name]


DOMAINS = {
    "everything": everything(),
    "box": box(-0.2, 0.3),
    "l2 ball": l2_ball(0.7),
    "simplex": simplex(),
    "l1 ball": l1_ball(1),
}


def agrees(found, oracle, tiny=1e-9):
    """Within 1e-6 of CVXPY, and no further above it than certified; `tiny` is CVXPY's own error."""
    scale = max(1.0, abs(oracle))
    assert abs(found.value - oracle) <= 1e-6 * scale
    assert found.value - oracle <= found.gap + tiny * scale
    assert found.gap <= 1e-7 * scale


@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("rank", [12, 5])
def test_quadratic_agrees_with_cvxpy(name, rank):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(rank, 12)), rng.normal(size=rank)
    A, b, c = X.T @ X, X.T @ y, y @ y / 2
    w = cp.Variable(12)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y) / 2), inside(name, w))
    oracle = problem.solve(solver=cp.CLARABEL)
    agrees(minimise_quadratic(A, b, c, DOMAINS[name]), oracle)


@pytest.mark.parametrize("name", ["box", "l2 ball", "simplex", "l1 ball"])
def test_linear_agrees_with_cvxpy(name):
    b = np.random.default_rng(1).normal(size=9)
    w = cp.Variable(9)
    oracle = cp.Problem(cp.Minimize(-b @ w), inside(name, w)).solve(solver=cp.CLARABEL)
    for zero in (0.0, np.zeros(9), np.zeros((9, 9))):
        agrees(minimise_quadratic(zero, b, 0.0, DOMAINS[name]), oracle)


@pytest.mark.parametrize("divisor", [1.0, 1e-3])
def test_ridge_agrees_with_cvxpy(divisor):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(40, 7)) / divisor, rng.normal(size=40)
    w = cp.Variable(7)
    loss = cp.sum_squares(X @ w - y) / 2 + 0.05 * cp.sum_squares(w)
    oracle = cp.Problem(cp.Minimize(loss)).solve(solver=cp.CLARABEL)
    A = X.T @ X + 0.1 * np.eye(7)
    found = minimise_quadratic(A, X.T @ y, y @ y / 2, everything())
    agrees(found, oracle)
    assert found.statement.startswith("best over everything (certified within ")


@pytest.mark.parametrize("with_hessian", [True, False])
@pytest.mark.parametrize("penalty", [0.0, 0.01])
@pytest.mark.parametrize("name", DOMAINS)
def test_logistic_agrees_with_cvxpy(name, penalty, with_hessian):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(80, 6)), rng.choice([-1.0, 1.0], size=80)
    at, hessian = logistic(X, y, penalty)
    w = cp.Variable(6)
    loss = cp.sum(cp.logistic(cp.multiply(-y, X @ w))) / 80 + penalty / 2 * cp.sum_squares(w)
    oracle = cp.Problem(cp.Minimize(loss), inside(name, w)).solve(solver=cp.CLARABEL)
    found = minimise(
        at,
        np.zeros(6),
        DOMAINS[name],
        curvature=penalty,
        hessian=hessian if with_hessian else None,
    )
    agrees(found, oracle)


@pytest.mark.parametrize(
    ("divisor", "with_hessian"),
    thinned((16.0, 1.0), (True, False), gate=[(16.0, False), (1.0, True)]),
)
def test_separable_digits_in_a_ball(divisor, with_hessian):
    """Badly conditioned, no regulariser, and the minimum on the sphere."""
    at, hessian = softmax_on_digits(divisor)
    found = minimise(
        at,
        np.zeros(650),
        l2_ball(10.0),
        hessian=hessian if with_hessian else None,
        most=3000,
    )
    assert found.gap <= 1e-4 * found.value
    assert np.linalg.norm(found.params) == pytest.approx(10.0, rel=1e-12)
    assert found.statement.startswith("best in the l2 ball of radius 10 (certified within ")


def exact(A, b, c, w):
    """w'Aw / 2 - b'w + c in rationals, without rounding."""
    A, b, w = (np.vectorize(Fraction, otypes=[object])(part) for part in (A, b, w))
    return w @ A @ w / 2 - b @ w + Fraction(c)


def unbeaten(found, rival_value):
    """`rival_value` belongs to a feasible point: if it beats the gap, the proof is wrong."""
    assert Fraction(found.value) - Fraction(rival_value) <= Fraction(found.gap)


@given(seeds, sizes, scales, scales)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_no_rival_over_everything(seed, size, scale, far):
    """In integers, so that A is semidefinite and A u = b, also where rounding cannot see it."""
    rng = np.random.default_rng(seed)
    root = rng.integers(-4, 5, size=(rng.integers(1, size + 1), size))
    rival = np.round(rng.normal(size=size) * 8) * far
    A = (root.T @ root).astype(float) * scale
    b, c = A @ rival, float(rng.normal())
    found = minimise_quadratic(A, b, c, everything(), radius=10 * np.linalg.norm(rival) + 1)
    unbeaten(found, exact(A, b, c, rival))
    unbeaten(found._replace(value=exact(A, b, c, found.params)), exact(A, b, c, rival))
    assert found.gap <= 1e-8 * max(1.0, scale * far**2)


@given(seeds, sizes, scales, scales, st.sampled_from([0.0, 1e-6, 1.0]))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_no_rival_in_the_ball(seed, size, scale, far, multiplier):
    """(A + m I) u = b makes u best among all points of its own norm or less."""
    rng = np.random.default_rng(seed)
    A = semidefinite(rng, size, rank=rng.integers(1, size + 1)) * scale
    rival = rng.normal(size=size) * far
    b = A @ rival + multiplier * scale * rival
    found = minimise_quadratic(A, b, 0.0, l2_ball(np.linalg.norm(rival) * (1 + 1e-15)))
    unbeaten(found, exact(A, b, 0.0, rival))
    assert found.gap <= 1e-8 * max(1.0, scale * far**2)


@given(seeds, sizes, scales)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_no_rival_in_the_box(seed, size, scale):
    """A gradient that pushes outwards at the walls and vanishes between them makes u best."""
    rng = np.random.default_rng(seed)
    A = semidefinite(rng, size, rank=rng.integers(1, size + 1)) * scale
    wall = rng.integers(-1, 2, size=size)
    rival = np.where(wall == 0, rng.uniform(-1, 1, size=size), wall)
    b = A @ rival + wall * rng.exponential(size=size) * scale
    found = minimise_quadratic(A, b, 0.0, box(-np.ones(size), np.ones(size)))
    unbeaten(found, exact(A, b, 0.0, rival))
    assert found.gap <= 1e-8 * max(1.0, scale)


@given(seeds, sizes, scales)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_no_rival_in_the_simplex(seed, size, scale):
    """A gradient that is lowest, and equal, where u is positive makes u best."""
    rng = np.random.default_rng(seed)
    A = semidefinite(rng, size, rank=rng.integers(1, size + 1)) * scale
    rival = rng.multinomial(64, np.ones(size) / size) / 64  # dyadic: sums to one exactly
    rival[rival < 0.1] = 0
    rival[-1] += 1 - rival.sum()
    b = A @ rival - np.where(rival > 0, 0.3, 0.3 + rng.exponential(size=size)) * scale
    found = minimise_quadratic(A, b, 0.0, simplex())
    unbeaten(found, exact(A, b, 0.0, rival))
    assert found.gap <= 1e-8 * max(1.0, scale)


@given(seeds, sizes, st.sampled_from(["box", "l2 ball", "simplex", "l1 ball"]))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_nearest_point_is_the_projection(seed, size, name):
    target = np.random.default_rng(seed).normal(size=size)
    found = minimise_quadratic(1.0, target, target @ target / 2, DOMAINS[name])
    best = nearest(name, target)
    assert abs(found.value - np.sum((best - target) ** 2) / 2) <= found.gap + 1e-15
    np.testing.assert_allclose(found.params, best, atol=1e-6)


@given(seeds, sizes, st.booleans())
@settings(max_examples=50, deadline=None, derandomize=True)
def test_minimum_of_a_smooth_separable_function_in_a_box(seed, size, with_hessian):
    """The sum of log cosh(w_i - a_i) is least where each w_i is nearest a_i."""
    target = 3 * np.random.default_rng(seed).normal(size=size)

    def at(w):
        gone = w - target
        return float(np.sum(np.logaddexp(gone, -gone) - np.log(2))), np.tanh(gone)

    def hessian(w):
        return np.diag(1 - np.tanh(w - target) ** 2)

    least = at(np.clip(target, -1, 1))[0]
    found = minimise(at, np.zeros(size), box(-1, 1), hessian=hessian if with_hessian else None)
    assert -1e-14 <= found.value - least <= found.gap <= 2e-9 * max(1.0, least)


@pytest.mark.parametrize("name", DOMAINS)
def test_one_dimension(name):
    """(w - 2)^2 / 2 on a line: the point of the domain nearest 2."""
    at = lambda w: (float((w[0] - 2) ** 2 / 2), w - 2)  # noqa: E731
    found = minimise(at, np.zeros(1), DOMAINS[name], curvature=1.0)
    assert found.value == pytest.approx(at(nearest(name, np.array([2.0])))[0], abs=1e-12)
    again = minimise_quadratic([[1.0]], [2.0], 2.0, DOMAINS[name])
    assert again.value == pytest.approx(found.value, abs=1e-12)


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
@pytest.mark.parametrize("zero", [0.0, np.zeros(4), np.zeros((4, 4))], ids=["scalar", "1d", "2d"])
def test_a_constant_is_least_anywhere(domain, zero):
    found = minimise_quadratic(zero, np.zeros(4), 3.0, domain)
    assert found.value == 3.0
    assert found.gap <= 1e-13


def test_an_unbounded_linear_function_is_taken_in_the_stated_ball():
    b = np.array([3.0, 4.0])
    by_formula = minimise_quadratic(0.0, b, 1.0, everything(), radius=7.0)
    by_search = minimise(lambda w: (1.0 - b @ w, -b), np.zeros(2), everything(), radius=7.0)
    for found in (by_formula, by_search):
        assert found.value == pytest.approx(1 - 5 * 7.0)
        assert found.gap <= 1e-7
        assert "l2 ball of radius 7, which models may leave" in found.statement


def test_an_unbounded_box_without_curvature_is_cut_as_the_statement_notes():
    found = minimise_quadratic(np.array([0.0, 1.0]), [1.0, -1.0], 0.0, box(0.0, np.inf), radius=5.0)
    np.testing.assert_allclose(found.params, [5.0, 0.0])
    assert "box [0, inf] cut to 5 around its point nearest 0" in found.statement


def test_an_unbounded_box_with_curvature_is_certified_as_it_is():
    found = minimise_quadratic(np.diag([1.0, 2.0]), [3.0, -1.0], 0.0, box(0.0, np.inf))
    np.testing.assert_allclose(found.params, [3.0, 0.0], atol=1e-8)
    assert found.statement.startswith("best in the box [0, inf] (certified")
    assert -4.5 <= found.value <= -4.5 + found.gap


def test_duplicate_columns_give_the_answer_of_least_norm():
    rng = np.random.default_rng(5)
    half, y = rng.normal(size=(30, 4)), rng.normal(size=30)
    X = np.hstack([half, half])
    found = minimise_quadratic(X.T @ X, X.T @ y, y @ y / 2, everything())
    least_norm = np.linalg.lstsq(X, y)[0]
    np.testing.assert_allclose(found.params, least_norm, atol=1e-12)
    assert "read as 0" in found.statement


def test_duplicate_rows_and_no_curvature():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(10, 3)), rng.choice([-1.0, 1.0], size=10)
    once, twice = (
        minimise(at, np.zeros(3), everything(), hessian=hessian)
        for at, hessian in (logistic(X, y), logistic(np.tile(X, (2, 1)), np.tile(y, 2)))
    )
    assert once.value == pytest.approx(twice.value, abs=once.gap + twice.gap)


@pytest.mark.parametrize("name", DOMAINS)
def test_an_optimal_start_is_returned_after_one_evaluation(name):
    target = np.array([2.0, -1.0, 0.5])
    evaluations = []

    def at(w):
        evaluations.append(w)
        return float(np.sum((w - target) ** 2) / 2), w - target

    found = minimise(at, nearest(name, target), DOMAINS[name], curvature=1.0)
    np.testing.assert_allclose(found.params, nearest(name, target), rtol=1e-15)
    assert len(evaluations) == 1


def test_the_gap_is_honest_when_the_budget_runs_out():
    rng = np.random.default_rng(7)
    A, b = np.diag(np.logspace(-6, 3, 20)), rng.normal(size=20)
    quick = minimise(
        lambda w: (w @ A @ w / 2 - b @ w, A @ w - b), np.zeros(20), l2_ball(10.0), most=12
    )
    best = minimise_quadratic(A, b, 0.0, l2_ball(10.0))
    assert 1e-6 < quick.value - best.value <= quick.gap


def test_a_start_outside_and_a_repeat_give_the_same_answer_inside():
    at, hessian = logistic(np.eye(3), np.array([1.0, -1.0, 1.0]))
    runs = [minimise(at, np.full(3, 50.0), l1_ball(1), hessian=hessian) for _ in range(2)]
    np.testing.assert_array_equal(runs[0].params, runs[1].params)
    assert abs(runs[0].params).sum() <= 1 + 1e-15
    assert runs[0].gap <= 1e-9


@value
class cone(Domain):
    """Unbounded, and no box."""

    bounded = False

    def project(self, params):
        return abs(params)


def test_refusals_give_the_reason():
    with pytest.raises(BadParameter, match="A's lowest eigenvalue must be at least 0, got -1"):
        minimise_quadratic(np.diag([1.0, -1.0]), np.zeros(2), 0.0, everything())
    with pytest.raises(BadParameter, match="A must be symmetric"):
        minimise_quadratic([[1.0, 1.0], [0.0, 1.0]], np.zeros(2), 0.0, everything())
    with pytest.raises(BadParameter, match="A must be a number"):
        minimise_quadratic(np.eye(3), np.zeros(2), 0.0, everything())
    with pytest.raises(BadParameter, match="curvature must be at least 0"):
        minimise(lambda w: (0.0, w), np.zeros(2), everything(), curvature=-1.0)
    with pytest.raises(BadParameter, match="start must have a finite value"):
        minimise(lambda w: (np.nan, w), np.zeros(2), l2_ball(1.0))
    with pytest.raises(BadParameter, match="domain must have a support or bounds, got cone"):
        minimise(lambda w: (0.0, w), np.zeros(2), cone())
