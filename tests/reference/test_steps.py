"""Every step of steps.py against a brute-force minimisation of (3) that knows nothing but psi."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

from tests.thinned import thinned

from . import steps

D = 4
ETA = 0.7
P = (1.5, 2.0, 3.0)
SMALL_P = (1.1, 1.3)


def euclidean_psi(x):
    return np.sum(x**2) / 2


def entropy_psi(x):
    return np.sum(x * np.log(x))


def p_norm_psi(p):
    return lambda x: np.sum(np.abs(x) ** p) ** (2 / p) / 2


def slope(psi, x):
    """grad psi by central differences (Richardson), so that no formula of steps.py is used."""
    out = np.zeros(len(x))
    for i in range(len(x)):
        e = np.zeros(len(x))
        e[i] = 1e-3 * abs(x[i])
        coarse = (psi(x + e) - psi(x - e)) / (2 * e[i])
        fine = (psi(x + e / 2) - psi(x - e / 2)) / e[i]
        out[i] = (4 * fine - coarse) / 3
    return out


def make_phi(psi, x, g, eta):
    """(6), the function that the client minimises."""
    fixed = psi(x)
    gradient_psi = slope(psi, x)
    return lambda y: g @ y + (psi(y) - fixed - gradient_psi @ (y - x)) / eta


def brute_force(psi, x, g, eta, start, bounds=None, constraints=()):
    """Minimise (6) with SLSQP, restarted four times from its own answer."""
    phi = make_phi(psi, x, g, eta)
    y = start
    for _ in range(5):
        y = minimize(
            phi,
            y,
            method="SLSQP",
            jac="3-point",
            bounds=bounds,
            constraints=constraints,
            options={"ftol": 1e-16, "maxiter": 200},
        ).x
    return y


def near(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6)


def draw(seed):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=D), 2 * rng.normal(size=D)


SUM_IS_ONE = {"type": "eq", "fun": lambda y: np.sum(y) - 1}
SEEDS = pytest.mark.parametrize("seed", range(6))


def in_p_ball(p, radius):
    # written as a smooth constraint: |y|_p^2 <= radius^2
    return {"type": "ineq", "fun": lambda y: radius**2 - np.sum(np.abs(y) ** p) ** (2 / p)}


@SEEDS
def test_euclidean(seed):
    _, x, g = draw(seed)
    near(steps.euclidean(x, g, ETA), brute_force(euclidean_psi, x, g, ETA, x))


@SEEDS
def test_euclidean_box(seed):
    _, x, g = draw(seed)
    x = np.clip(x, -1, 0.5)
    expected = brute_force(euclidean_psi, x, g, ETA, x, bounds=[(-1, 0.5)] * D)
    near(steps.euclidean_box(x, g, ETA, -1, 0.5), expected)


@SEEDS
def test_euclidean_box_with_a_side_per_coordinate(seed):
    rng, x, g = draw(seed)
    low = -rng.uniform(size=D)
    high = rng.uniform(size=D)
    x = np.clip(x, low, high)
    expected = brute_force(euclidean_psi, x, g, ETA, x, bounds=list(zip(low, high, strict=True)))
    near(steps.euclidean_box(x, g, ETA, low, high), expected)


@SEEDS
@pytest.mark.parametrize("radius", [0.8, 5.0])
def test_euclidean_ball(seed, radius):
    _, x, g = draw(seed)
    x = x * min(1, 0.9 * radius / np.linalg.norm(x))
    expected = brute_force(euclidean_psi, x, g, ETA, x, constraints=in_p_ball(2, radius))
    near(steps.euclidean_ball(x, g, ETA, radius), expected)


@SEEDS
@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
def test_euclidean_simplex(seed, scale):
    rng, _, g = draw(seed)
    x = rng.dirichlet(np.ones(D))
    g = scale * g
    start = np.full(D, 1 / D)
    expected = brute_force(
        euclidean_psi, x, g, ETA, start, bounds=[(0, 1)] * D, constraints=SUM_IS_ONE
    )
    actual = steps.euclidean_simplex(x, g, ETA)
    near(actual, expected)
    assert np.all(actual >= 0)
    assert abs(np.sum(actual) - 1) < 1e-12


@SEEDS
def test_entropy_simplex(seed):
    rng, _, g = draw(seed)
    x = rng.dirichlet(2 * np.ones(D))
    expected = brute_force(
        entropy_psi, x, g, ETA, x, bounds=[(1e-9, 1)] * D, constraints=SUM_IS_ONE
    )
    near(steps.entropy_simplex(x, g, ETA), expected)


@SEEDS
def test_entropy_box(seed):
    rng, _, g = draw(seed)
    x = rng.uniform(0.2, 1.5, size=D)
    expected = brute_force(entropy_psi, x, g, ETA, x, bounds=[(0.2, 1.5)] * D)
    near(steps.entropy_box(x, g, ETA, 0.2, 1.5), expected)


@SEEDS
@pytest.mark.parametrize("p", P)
def test_p_norm(seed, p):
    _, x, g = draw(seed)
    near(steps.p_norm(x, g, ETA, p), brute_force(p_norm_psi(p), x, g, ETA, x))


@SEEDS
@pytest.mark.parametrize("p", P)
@pytest.mark.parametrize("radius", [0.8, 50.0])
def test_p_norm_ball(seed, p, radius):
    _, x, g = draw(seed)
    x = x * min(1, 0.9 * radius / np.linalg.norm(x, p))
    expected = brute_force(p_norm_psi(p), x, g, ETA, x, constraints=in_p_ball(p, radius))
    near(steps.p_norm_ball(x, g, ETA, p, radius), expected)


@pytest.mark.parametrize(
    ("seed", "p", "radius"),
    thinned(range(6), SMALL_P, [0.8, 50.0], gate=[(0, 1.1, 0.8), (1, 1.1, 50.0), (2, 1.3, 0.8)]),
)
def test_nothing_is_better_than_the_p_norm_step_for_small_p(seed, p, radius):
    """Near p = 1 the curvature of psi is unbounded at 0 and SLSQP itself is off by 1e-5 to 1e-4, so
    here no point that it or chance finds in the ball may have a smaller (6)."""
    rng, x, g = draw(seed)
    x = x * min(1, 0.9 * radius / np.linalg.norm(x, p))
    psi = p_norm_psi(p)
    phi = make_phi(psi, x, g, ETA)
    actual = steps.p_norm_ball(x, g, ETA, p, radius)
    assert np.linalg.norm(actual, p) <= radius * (1 + 1e-14)
    found = brute_force(psi, x, g, ETA, x, constraints=in_p_ball(p, radius))
    np.testing.assert_allclose(actual, found, rtol=0, atol=1e-3)
    others = [found] + [actual + 10.0**-e * rng.normal(size=D) for e in range(9) for _ in range(20)]
    for other in others:
        other = other * min(1, radius / np.linalg.norm(other, p))
        assert phi(actual) <= phi(other) + 1e-10


@pytest.mark.parametrize("p", P + SMALL_P)
def test_link_is_the_gradient_of_psi_and_inverse_link_its_inverse(p):
    _, x, _ = draw(0)
    np.testing.assert_allclose(steps.link(x, p), slope(p_norm_psi(p), x), rtol=1e-9)
    np.testing.assert_allclose(
        steps.link(x, p), approx_fprime(x, p_norm_psi(p), 1e-8), rtol=0, atol=1e-6
    )
    np.testing.assert_allclose(steps.inverse_link(steps.link(x, p), p), x, rtol=1e-12)
    assert np.array_equal(steps.link(np.zeros(D), p), np.zeros(D))


def test_p_norm_with_p_two_is_euclidean():
    _, x, g = draw(1)
    np.testing.assert_allclose(steps.p_norm(x, g, ETA, 2.0), steps.euclidean(x, g, ETA), rtol=1e-13)
    np.testing.assert_allclose(
        steps.p_norm_ball(x, g, ETA, 2.0, 0.5), steps.euclidean_ball(x, g, ETA, 0.5), rtol=1e-13
    )


def test_simplex_projection_by_hand():
    np.testing.assert_allclose(steps.project_simplex(np.array([0.2, 0.3, 0.5])), [0.2, 0.3, 0.5])
    np.testing.assert_allclose(steps.project_simplex(np.array([3.0, 0.0, 0.0])), [1, 0, 0])
    np.testing.assert_allclose(steps.project_simplex(np.array([1.0, 1.0, -1.0])), [0.5, 0.5, 0])
    np.testing.assert_allclose(steps.project_simplex(np.array([7.0])), [1])


def test_entropy_simplex_does_not_overflow():
    x = np.full(3, 1 / 3)
    y = steps.entropy_simplex(x, np.array([-5000.0, 0.0, 5000.0]), 1.0)
    np.testing.assert_allclose(y, [1, 0, 0], atol=1e-12)
