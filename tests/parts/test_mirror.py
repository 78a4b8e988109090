"""Every mirror step against the reference's, and the pairs that have no exact step."""

import functools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mainstem as ms
from mainstem import parts
from mainstem.errors import BadParameter
from tests.reference import steps as reference

D = 6


def l1_step(x, g, eta, radius):
    """The nearest point of the l1 ball: all coordinates shrunk by one amount, by bisection."""
    z = x - eta * g
    low, high = 0.0, np.max(np.abs(z))
    for _ in range(200):
        middle = (low + high) / 2
        if np.sum(np.maximum(np.abs(z) - middle, 0)) > radius:
            low = middle
        else:
            high = middle
    shrunk = np.sign(z) * np.maximum(np.abs(z) - high, 0)
    return z if np.sum(np.abs(z)) <= radius else shrunk


PAIRS = {  # name: (map on its domain, the reference step, whether a point is in the domain)
    "euclidean": (parts.euclidean(), reference.euclidean, lambda y: True),
    "euclidean, box": (
        parts.euclidean(parts.box(-1, 0.5)),
        lambda *at: reference.euclidean_box(*at, -1, 0.5),
        lambda y: y.min() >= -1 and y.max() <= 0.5,
    ),
    "euclidean, l2 ball": (
        parts.euclidean(parts.l2_ball(0.8)),
        lambda *at: reference.euclidean_ball(*at, 0.8),
        lambda y: np.linalg.norm(y) <= 0.8 * (1 + 1e-12),
    ),
    "euclidean, l1 ball": (
        parts.euclidean(parts.l1_ball(1.5)),
        lambda *at: l1_step(*at, 1.5),
        lambda y: np.abs(y).sum() <= 1.5 * (1 + 1e-12),
    ),
    "euclidean, simplex": (
        parts.euclidean(parts.simplex()),
        reference.euclidean_simplex,
        lambda y: y.min() >= 0 and abs(y.sum() - 1) < 1e-12,
    ),
    "entropy": (
        parts.entropy(),
        reference.entropy_simplex,
        lambda y: y.min() >= 0 and abs(y.sum() - 1) < 1e-12,
    ),
    "entropy, box": (
        parts.entropy(parts.box(0.2, 1.5)),
        lambda *at: reference.entropy_box(*at, 0.2, 1.5),
        lambda y: y.min() >= 0.2 and y.max() <= 1.5,
    ),
    "1.5-norm": (parts.p_norm(1.5), lambda *at: reference.p_norm(*at, 1.5), lambda y: True),
    "1.1-norm": (parts.p_norm(1.1), lambda *at: reference.p_norm(*at, 1.1), lambda y: True),
    "2-norm": (parts.p_norm(2), reference.euclidean, lambda y: True),
    "1.5-norm, ball": (
        parts.p_norm(1.5, parts.p_ball(1.5, 0.7)),
        lambda *at: reference.p_norm_ball(*at, 1.5, 0.7),
        lambda y: np.linalg.norm(y, 1.5) <= 0.7 * (1 + 1e-12),
    ),
}


@functools.cache
def compiled(name):
    mirror = PAIRS[name][0]
    return jax.jit(mirror.step), jax.jit(mirror.start)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    rate=st.sampled_from([1e-3, 0.3, 2.0]),
    scale=st.sampled_from([0.1, 1.0, 20.0]),
)
@pytest.mark.parametrize("name", PAIRS)
def test_step_is_the_reference_step_and_stays_in_the_domain(name, seed, rate, scale):
    _, expected, inside = PAIRS[name]
    rng = np.random.default_rng(seed)
    with jax.enable_x64(True):
        step, start = compiled(name)
        x = np.asarray(start(rng.normal(size=D)))
        g = scale * rng.normal(size=D)
        y = np.asarray(step(x, g, rate))
    assert inside(x)
    assert inside(y)
    np.testing.assert_allclose(y, expected(x, g, rate), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", PAIRS)
def test_no_gradient_no_move(name):
    rng = np.random.default_rng(3)
    with jax.enable_x64(True):
        step, start = compiled(name)
        x = start(rng.normal(size=D))
        np.testing.assert_allclose(step(x, np.zeros(D), 0.3), x, rtol=1e-12, atol=1e-12)


def test_p_norm_steps_away_from_the_origin():
    """At 0 the link is 0, so the first step is the inverse link of -rate g alone."""
    g = np.array([1.0, -2.0, 0.0, 0.5, 0.0, 3.0])
    with jax.enable_x64(True):
        y = compiled("1.5-norm")[0](np.zeros(D), g, 0.3)
    np.testing.assert_allclose(y, reference.inverse_link(-0.3 * g, 1.5), rtol=1e-12)


def test_exponentiated_gradient_survives_huge_gradients():
    y = parts.entropy().step(np.full(3, 1 / 3), np.array([-5000.0, 0.0, 5000.0]), 1.0)
    np.testing.assert_allclose(y, [1, 0, 0], atol=1e-12)


def test_entropy_starts_at_a_positive_point_or_else_in_the_middle():
    start = parts.entropy().start
    np.testing.assert_allclose(start(np.array([0.2, 0.3, 0.5])), [0.2, 0.3, 0.5], rtol=1e-6)
    for outside in ([0.0, 0.5, 0.5], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]):
        np.testing.assert_allclose(start(np.array(outside)), np.full(3, 1 / 3), rtol=1e-6)


P_BALL = parts.p_ball(1.5, 1)
REFUSED = [
    (parts.euclidean, {"domain": P_BALL}, "euclidean: domain must be a domain other than p_ball"),
    (parts.entropy, {"domain": parts.l2_ball(1)}, "entropy: domain must be simplex or box"),
    (parts.entropy, {"domain": parts.l1_ball(1)}, "entropy: domain must be simplex or box"),
    (parts.entropy, {"domain": P_BALL}, "entropy: domain must be simplex or box"),
    (parts.entropy, {"domain": parts.everything()}, "entropy: domain must be simplex or box"),
    (parts.entropy, {"domain": parts.box(0, 1)}, "entropy: domain must be .* low above 0"),
    (parts.entropy, {"domain": parts.box(-1, 1)}, "entropy: domain must be .* low above 0"),
    (parts.p_norm, {"p": 1.5, "domain": parts.p_ball(1.2, 1)}, "p_norm: domain .*p_ball\\(1.5"),
    (parts.p_norm, {"p": 1.5, "domain": parts.l2_ball(1)}, "p_norm: domain must be everything or"),
    (parts.p_norm, {"p": 1.5, "domain": parts.simplex()}, "p_norm: domain must be everything or"),
    (parts.p_norm, {"p": 1.5, "domain": parts.box(0, 1)}, "p_norm: domain must be everything or"),
]


@pytest.mark.parametrize(("factory", "arguments", "message"), REFUSED)
def test_pairs_without_an_exact_step_are_refused(factory, arguments, message):
    with pytest.raises(BadParameter, match=message):
        factory(**arguments)


@pytest.mark.parametrize(
    "name",
    ["euclidean, l2 ball", "euclidean, l1 ball", "euclidean, simplex", "entropy", "1.5-norm"],
)
def test_a_rate_for_each_coordinate_is_refused_where_coordinates_are_coupled(name):
    with pytest.raises(BadParameter, match="fedomd: step must have one rate for all coordinates"):
        ms.fedomd(step=parts.adagrad(0.1), mirror=PAIRS[name][0])


@pytest.mark.parametrize("name", ["euclidean", "euclidean, box", "entropy, box"])
def test_a_rate_for_each_coordinate_is_exact_where_they_do_not(name):
    mirror, expected, _ = PAIRS[name]
    ms.fedomd(step=parts.adagrad(0.1), mirror=mirror)
    rng = np.random.default_rng(4)
    g, rates = rng.normal(size=D), rng.uniform(0.1, 2, size=D)
    with jax.enable_x64(True):
        step, start = compiled(name)
        x = np.asarray(start(rng.normal(size=D)))
        joint = np.asarray(step(x, g, rates))
    apart = [expected(x[i : i + 1], g[i : i + 1], rates[i])[0] for i in range(D)]
    np.testing.assert_allclose(joint, apart, rtol=1e-10)


@pytest.mark.parametrize(
    ("mirror", "psi"),
    [
        (parts.euclidean(parts.box(-3, 3)), lambda x: np.sum(x**2, axis=-1) / 2),
        (parts.entropy(), lambda x: np.sum(x * np.log(x), axis=-1)),
        (parts.entropy(parts.box(0.2, 5.0)), lambda x: np.sum(x * np.log(x), axis=-1)),
        (parts.entropy(parts.box(0.05, 0.5)), lambda x: np.sum(x * np.log(x), axis=-1)),
    ],
    ids=["euclidean", "entropy", "entropy, large box", "entropy, small box"],
)
def test_maps_are_as_strongly_convex_as_they_declare(mirror, psi):
    """psi((x + y) / 2) <= (psi(x) + psi(y)) / 2 - s |x - y|^2 / 8, in the norm whose dual is declared."""
    draw = np.random.default_rng(0)
    if mirror.domain.unit_sum:
        x, y = draw.dirichlet(np.ones(6), size=(2, 4000))
    else:
        x, y = draw.uniform(*mirror.domain.bounds, size=(2, 4000, 6))
        y[:2000] = x[:2000] + 1e-2 * (y[:2000] - x[:2000])  # close ones too
    order = {"max": 1, "l2": 2}[mirror.dual_norm]
    length = np.linalg.norm(x - y, ord=order, axis=-1)
    gain = (psi(x) + psi(y)) / 2 - psi((x + y) / 2)
    assert np.all(gain >= mirror.strong_convexity * length**2 / 8 * (1 - 1e-6) - 1e-13)
