"""Geometry: gaps of syncs, divergences and steepness on domains, against brute force."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import xlogy

from mainstem.errors import BadParameter
from mainstem.measure.estimate import EXACT, MOST
from mainstem.measure.geometry import divergence, longest_period, steepest
from mainstem.parts import (
    after_steps,
    box,
    entropy,
    euclidean,
    every,
    everything,
    l1_ball,
    l2_ball,
    never,
    p_ball,
    p_norm,
    simplex,
)
from mainstem.parts.domain import CORNERS
from mainstem.spec import name_of

D = 3
DOMAINS = {
    "box": box(-0.7, 1.3),
    "l2_ball": l2_ball(1.7),
    "l1_ball": l1_ball(1.7),
    "simplex": simplex(),
}
domains = pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
seeds = st.integers(0, 2**32 - 1)
modest = settings(max_examples=20, deadline=None, derandomize=True)


def points(domain, draw, count=2000):
    """Points of the domain, many of them on its edge; drawn and scaled by hand, nothing projected."""
    normal = draw.normal(size=(count, D))
    shrunk = draw.uniform(size=(count, 1)) ** draw.integers(0, 2, (count, 1))
    match name_of(domain):
        case "box":
            low, high = domain.bounds
            return np.clip(draw.uniform(low - 0.5, high + 0.5, (count, D)), low, high)
        case "l2_ball":
            return 1.7 * shrunk * normal / np.linalg.norm(normal, axis=1, keepdims=True)
        case "l1_ball":
            return 1.7 * shrunk * normal / np.sum(np.abs(normal), axis=1, keepdims=True)
    return draw.dirichlet(np.full(D, 0.5), count)


def corners(domain, size=D):
    """The points whose convex hull the domain is."""
    match name_of(domain):
        case "box":
            return np.array(list(itertools.product(domain.bounds, repeat=size)))
        case "l1_ball":
            return 1.7 * np.concatenate([np.eye(size), -np.eye(size)])
    return np.eye(size)


# --- tau ------------------------------------------------------------------------------------------


def longest(syncs, steps):
    """tau of Mitra et al. 2021, counted: how old the common model gets, at most, in a run."""
    worst = age = 0
    for t in range(1, steps + 1):
        age += 1
        worst = max(worst, age)
        if t in syncs:
            age = 0
    return worst


@modest
@given(st.sets(st.integers(1, 60), min_size=1), st.integers(1, 50))
def test_gap_of_any_set_of_syncs(times, steps):
    assert longest_period(after_steps(times), steps) == longest(times, steps)


@modest
@given(st.integers(1, 12), st.data(), st.integers(1, 50))
def test_gap_of_periodic_syncs(period, data, steps):
    offset = data.draw(st.integers(0, period - 1))
    syncs = range(offset or period, steps + 1, period)
    assert longest_period(every(period, offset), steps) == longest(syncs, steps)


def test_gap_where_it_is_known():
    assert longest_period(every(7), 700) == 7
    assert longest_period(every(7, offset=3), 700) == 7
    assert longest_period(every(7), 5) == 5  # the run ends first
    assert longest_period(every(1), 5) == longest_period(never(), 1) == 1
    assert longest_period(never(), 40) == 40
    assert longest_period(after_steps([10, 11, 30]), 40) == 19
    assert longest_period(after_steps([30]), 40) == 30  # from the start
    assert longest_period(after_steps([5]), 40) == 35  # to the end


@pytest.mark.parametrize(
    ("sync", "steps", "message"),
    [
        (5, 10, r"longest_period: sync must be a sync such as every\(5\), got 5"),
        (every(5), 0, "longest_period: steps must be an integer of at least 1, got 0"),
        (every(5), 2.5, "longest_period: steps must be an integer of at least 1, got 2.5"),
    ],
)
def test_gap_refuses(sync, steps, message):
    with pytest.raises(BadParameter, match=message):
        longest_period(sync, steps)


# --- D^2 ------------------------------------------------------------------------------------------


def half_square(x):
    return np.sum(x**2, axis=-1) / 2


def negative_entropy(x):
    return np.sum(xlogy(x, x), axis=-1)


def bregman(psi, slope, u, x):
    """psi(u) - psi(x) - <psi'(x), u - x>, as defined."""
    return psi(u) - psi(x) - (u - x) @ slope(x)


@domains
@modest
@given(seed=seeds)
def test_euclidean_divergence_is_reached_and_never_exceeded(domain, seed):
    draw = np.random.default_rng(seed)
    start = points(domain, draw, 1)[0]
    found = divergence(euclidean(domain), start)
    every_point = bregman(half_square, lambda x: x, points(domain, draw), start)
    if name_of(domain) == "l2_ball":
        farthest = -1.7 * start / np.linalg.norm(start)
        reached = bregman(half_square, lambda x: x, farthest, start)
    else:
        reached = np.max(bregman(half_square, lambda x: x, corners(domain), start))
    assert found.how == EXACT
    assert float(found) == pytest.approx(reached, rel=1e-12)
    assert np.max(every_point) <= float(found) * (1 + 1e-12)


@modest
@given(seed=seeds)
def test_entropy_divergence_on_the_simplex(seed):
    draw = np.random.default_rng(seed)
    start = 0.9 * draw.dirichlet(np.ones(D)) + 0.1 / D
    found = divergence(entropy(), start)
    every_point, reached = (
        bregman(negative_entropy, lambda x: 1 + np.log(x), u, start)
        for u in (points(simplex(), draw), np.eye(D))
    )
    assert float(found) == pytest.approx(np.max(reached), rel=1e-12)
    assert np.max(every_point) <= float(found) * (1 + 1e-12)


@modest
@given(seed=seeds)
def test_entropy_divergence_on_a_box(seed):
    draw = np.random.default_rng(seed)
    domain = box(0.2, 1.9)
    start = draw.uniform(0.2, 1.9, D)
    found = divergence(entropy(domain), start)
    every_point, reached = (
        bregman(negative_entropy, lambda x: 1 + np.log(x), u, start)
        for u in (points(domain, draw), corners(domain))
    )
    assert float(found) == pytest.approx(np.max(reached), rel=1e-10)
    assert np.max(every_point) <= float(found) * (1 + 1e-10)


def test_divergence_where_it_is_known():
    assert float(divergence(euclidean(box(-3, 3)), [0.0])) == 4.5  # Mitra et al. 2021, Section VII
    assert float(divergence(euclidean(l2_ball(2)), np.zeros(5))) == 2.0
    assert float(divergence(entropy(), np.full(8, 1 / 8))) == pytest.approx(math.log(8), rel=1e-14)


@pytest.mark.parametrize(
    ("mirror", "got"),
    [
        (euclidean(), r"euclidean\(\)"),
        (p_norm(1.5), r"p_norm\(p=1.5\)"),
        (p_norm(1.5, p_ball(1.5, 1.0)), r"p_norm\(p=1.5, domain="),
    ],
)
def test_divergence_refuses(mirror, got):
    wanted = "divergence: mirror must be euclidean or entropy, on a bounded domain, got "
    with pytest.raises(BadParameter, match=wanted + got):
        divergence(mirror, np.zeros(D))


# --- L of quadratics ------------------------------------------------------------------------------


def slopes(matrices, vectors, at):
    """|A w - b| for each loss and point: [losses, points]."""
    full = [A if np.ndim(A) else A * np.eye(vectors.shape[1]) for A in matrices]
    rows = [np.linalg.norm(at @ A - b, axis=1) for A, b in zip(full, vectors, strict=True)]
    return np.array(rows)


@domains
@modest
@given(seed=seeds)
def test_steepest_of_isotropic_quadratics(domain, seed):
    draw = np.random.default_rng(seed)
    scales, vectors = draw.uniform(0, 3, 6), draw.normal(size=(6, D))
    found = steepest(scales, vectors, domain, rank_one=False)
    if name_of(domain) == "l2_ball":  # opposite to b
        lengths = np.linalg.norm(vectors, axis=1)
        each = slopes(scales, vectors, -1.7 * vectors / lengths[:, None])
        reached = np.max(np.diag(each))
    else:
        reached = np.max(slopes(scales, vectors, corners(domain)))
    assert found.how == EXACT
    assert float(found) == pytest.approx(reached, rel=1e-12)
    assert np.max(slopes(scales, vectors, points(domain, draw))) <= float(found) * (1 + 1e-12)


@domains
@modest
@given(seed=seeds)
def test_steepest_of_matrices(domain, seed):
    """In a ball only a bound is known, unless b points where A is largest."""
    draw = np.random.default_rng(seed)
    halves = draw.normal(size=(6, D, D))
    matrices, vectors = halves @ halves.transpose(0, 2, 1), draw.normal(size=(6, D))
    found = steepest(matrices, vectors, domain, rank_one=False)
    if name_of(domain) == "l2_ball":
        assert found.how == MOST
    else:
        reached = np.max(slopes(matrices, vectors, corners(domain)))
        assert found.how == EXACT
        assert float(found) == pytest.approx(reached, rel=1e-12)
    assert np.max(slopes(matrices, vectors, points(domain, draw))) <= float(found) * (1 + 1e-12)


@modest
@given(seed=seeds)
def test_steepest_of_rank_one_losses_in_a_ball(seed):
    draw = np.random.default_rng(seed)
    x, y = draw.normal(size=(6, D)), draw.normal(size=6)
    matrices = x[:, :, None] * x[:, None] + 0.3 * np.eye(D)
    vectors = y[:, None] * x
    found = steepest(matrices, vectors, l2_ball(1.7), rank_one=True)
    worst = -1.7 * (np.sign(y) / np.linalg.norm(x, axis=1))[:, None] * x
    assert found.how == EXACT
    assert float(found) == pytest.approx(np.max(slopes(matrices, vectors, worst)), rel=1e-12)
    inside = points(l2_ball(1.7), draw)
    assert np.max(slopes(matrices, vectors, inside)) <= float(found) * (1 + 1e-12)


def test_steepest_in_a_large_box_is_a_bound():
    size = CORNERS + 1
    draw = np.random.default_rng(0)
    halves = draw.normal(size=(4, size, 2))
    matrices, vectors = halves @ halves.transpose(0, 2, 1), draw.normal(size=(4, size))
    found = steepest(matrices, vectors, box(-0.7, 1.3), rank_one=False)
    reached = np.max(slopes(matrices, vectors, corners(box(-0.7, 1.3), size)))
    assert found.how == MOST
    assert reached <= float(found) < 2.5 * reached
    scales = steepest(np.ones(4), vectors, box(-0.7, 1.3), rank_one=False)
    assert scales.how == EXACT  # coordinates apart, any number of them
    for ends in ((np.full(size, -0.7), 1.3), (-0.7, np.full(size, 1.3))):
        assert steepest(matrices, vectors, box(*ends), rank_one=False) == pytest.approx(found)


def test_steepest_without_bounds():
    draw = np.random.default_rng(0)
    vectors = draw.normal(size=(4, D))
    level = steepest(np.zeros(4), vectors, everything(), rank_one=False)
    assert float(level) == pytest.approx(np.linalg.norm(vectors, axis=1).max(), rel=1e-14)
    assert float(steepest(np.ones(4), vectors, everything(), rank_one=False)) == math.inf


def test_steepest_refuses_a_domain_without_known_corners():
    wanted = "domain must be a box, a ball or the simplex, got p_ball"
    with pytest.raises(BadParameter, match=wanted):
        steepest(np.ones(1), np.ones((1, D)), p_ball(1.5, 1.0), rank_one=False)
