"""Estimates: the uncertainty that they state, and that intervals cover as often as they state."""

import functools

import numpy as np
import pytest
from scipy import stats

from mainstem.errors import BadData
from mainstem.measure import Prefix, spread
from mainstem.measure.estimate import (
    EXACT,
    INTERVAL,
    LEAST,
    MOST,
    Estimate,
    at_least,
    at_most,
    exact,
    mean,
)
from mainstem.problems import linear, quadratic
from mainstem.streams import sea_quadratic, sea_ridge
from tests.algorithms.table import regression

# --- one number -----------------------------------------------------------------------------------


def test_an_estimate_states_its_uncertainty():
    assert exact(2) == Estimate(2.0, 2.0, 2.0, EXACT)
    assert at_least(2) == Estimate(2.0, 2.0, np.inf, LEAST)
    assert at_most(2) == Estimate(2.0, 0.0, 2.0, MOST)
    assert float(exact(np.float32(0.5))) == 0.5
    read = [str(estimate) for estimate in (exact(0.125), at_least(1e7), at_most(np.pi))]
    assert read == ["0.125 (exact)", "at least 1e+07", "at most 3.14159"]
    assert str(Estimate(1.0, 0.5, 1.5, INTERVAL)) == "1 in [0.5, 1.5] (95 % interval)"


def test_the_interval_of_a_mean_is_students():
    sample = np.random.default_rng(0).normal(3.0, 2.0, size=(4, 3))  # of any shape
    found, student = mean(sample), stats.ttest_1samp(sample.ravel(), 0.0).confidence_interval(0.95)
    assert found.how == INTERVAL
    assert found.value == pytest.approx(sample.mean(), rel=1e-12)
    assert found[1:3] == pytest.approx(tuple(student), rel=1e-12)


def test_one_value_gives_no_interval_for_the_mean():
    assert mean([7.0]) == Estimate(7.0, -np.inf, np.inf, INTERVAL)


def test_intervals_of_a_normal_mean_cover_as_often_as_stated():
    samples = np.random.default_rng(0).normal(1.0, 3.0, size=(4000, 5))
    hits = np.mean([low <= 1.0 <= high for _, low, high, _ in map(mean, samples)])
    assert abs(hits - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 4000)


# --- the spread of gradients ----------------------------------------------------------------------

K, D, AT = 10, 3, np.array([0.5, -1.0, 0.2])
NOISE, ZETA, RIDGE, CURVATURE = 0.7, 0.4, 0.6, 2.5
KNOBS = {"dimension": D, "noise": NOISE, "spatial": ZETA, "distance": 1.5, "seed": 3}
GROUPS = 20  # stretches
STEPS = 20 * GROUPS
CENTER = 1.5 * np.ones(D) / np.sqrt(D)


def quadratic_truth():
    """The gradient a (w - target) has the knob's variance; that of the crowd 1/K of it."""
    return NOISE, ZETA, np.sum((CURVATURE * (AT - CENTER)) ** 2) + NOISE / K


def ridge_truth():
    r"""x ~ N(0, I), y = <c_k, x> + e: with v = w - c_k the gradient is x x'v - e x + ridge w.

    E |x x'v|^2 = (D + 2) |v|^2 and E x x'v = v, so its variance is (D + 1) |v|^2 + D Var(e), and the
    mean of |w - c_k|^2 over clients is |w - c|^2 + zeta^2.
    """
    noise = (D + 1) * (np.sum((AT - CENTER) ** 2) + ZETA) + D * NOISE
    return noise, ZETA, np.sum(((1 + RIDGE) * AT - CENTER) ** 2) + noise / K


WORLDS = {
    "quadratic": (
        quadratic(D, curvature=CURVATURE),
        sea_quadratic(K, curvature=CURVATURE, **KNOBS),
        quadratic_truth(),
    ),
    "ridge": (
        linear(D, ridge=RIDGE, intercept=False),
        sea_ridge(K, ridge=RIDGE, **KNOBS),
        ridge_truth(),
    ),
}
worlds = pytest.mark.parametrize("name", WORLDS)


def covered(found, truth):
    """In how many of the rows of estimates the interval has the truth in it."""
    return np.sum(
        [[e.low <= t <= e.high for e, t in zip(row, truth, strict=True)] for row in found], 0
    )


@worlds
def test_intervals_cover_the_truth_in_90_of_100_seeds(name):
    problem, stream, truth = WORLDS[name]
    found = [spread(Prefix(problem, stream, STEPS, seed=seed), AT) for seed in range(300)]
    assert np.all(covered(found[:100], truth) >= 90)
    assert np.all(covered(found, truth) >= 270)
    # and not by being wide: the errors are as large as the intervals state
    values = np.array([[e.value for e in row] for row in found])
    reach = np.array([[e.high - e.value for e in row] for row in found])
    stated = np.sqrt(np.mean(reach**2, axis=0)) / stats.t.ppf(0.975, GROUPS - 1)
    real = np.sqrt(np.mean((values - truth) ** 2, axis=0))
    assert np.all((real > 0.75 * stated) & (real < 1.33 * stated))


@functools.cache
def table():
    return regression(85, K, D)


def by_hand(w):
    """Of 85 steps 84 fill 21 stretches of 4; in each, the unbiased estimates, client by client."""
    world = table()
    slopes = np.array([[world.gradient(w, k, t) for k in range(K)] for t in range(1, 86)])
    rows = []
    for stretch in slopes[:84].reshape(21, 4, K, D):
        noise = np.mean([np.trace(np.cov(stretch[:, k].T)) for k in range(K)])
        means = stretch.mean(axis=0)
        apart = np.mean([np.sum((own - means.mean(axis=0)) ** 2) for own in means])
        too_much = (1 - 1 / K) * noise / 4  # the distance of the means due to noise alone
        crowd = np.mean(np.sum(stretch.mean(axis=1) ** 2, axis=1))
        rows.append((noise, apart - too_much, crowd))
    return np.array(rows)


def test_the_spread_of_a_table_by_hand():
    found = spread(Prefix(table().problem, table().stream, 85), AT)
    for estimate, values in zip(found, by_hand(AT).T, strict=True):
        student = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
        assert estimate.how == INTERVAL
        assert estimate[:3] == pytest.approx((values.mean(), *student), abs=1e-8)


def test_the_spread_is_that_at_the_best_model_if_left_out():
    world, prefix = table(), Prefix(table().problem, table().stream, 85)
    x, y = world.x.reshape(-1, D), world.y.ravel()
    best = np.linalg.solve(x.T @ x / len(x) + world.ridge * np.eye(D), x.T @ y / len(x))
    values = [estimate.value for estimate in spread(prefix)]
    assert values == pytest.approx(list(by_hand(best).mean(axis=0)), abs=1e-8)


def test_too_few_steps_for_a_spread():
    problem, stream = table().problem, table().stream
    with pytest.raises(BadData, match="spread: wants at least 4 steps"):
        spread(Prefix(problem, stream, 3), AT)
    assert np.isfinite(spread(Prefix(problem, stream, 4), AT).spatial.high)
