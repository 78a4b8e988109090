"""Domains: projections by their variational inequality, supports by their maximisers."""

import functools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainstem import parts
from mainstem.errors import BadParameter

D = 5
UNIT = np.eye(D)
POLYTOPES = {  # (domain, its vertices)
    "simplex": (parts.simplex(), UNIT),
    "l1 ball": (parts.l1_ball(2.0), np.vstack([2 * UNIT, -2 * UNIT])),
    "box": (
        parts.box(-1, 0.5),
        np.array(np.meshgrid(*[[-1, 0.5]] * D)).reshape(D, -1).T,
    ),
}
BOUNDED = {
    **{name: domain for name, (domain, _) in POLYTOPES.items()},
    "l2 ball": parts.l2_ball(1.3),
    "1.5-norm ball": parts.p_ball(1.5, 0.7),
    "1.01-norm ball": parts.p_ball(1.01, 2.0),
}


def maximiser(name, g):
    """The point of the domain that is furthest along g, in closed form."""
    largest = np.argmax(np.abs(g))
    if name == "simplex":
        return UNIT[np.argmax(g)]
    if name == "l1 ball":
        return 2 * np.sign(g[largest]) * UNIT[largest]
    if name == "box":
        return np.where(g > 0, 0.5, -1)
    if name == "l2 ball":
        return 1.3 * g / np.linalg.norm(g)
    p, radius = (1.5, 0.7) if name.startswith("1.5") else (1.01, 2.0)
    point = np.sign(g) * np.abs(g / g[largest]) ** (1 / (p - 1))  # Hoelder's equality
    return radius * point / np.linalg.norm(point, p)


@functools.cache
def projection(name):
    return jax.jit(BOUNDED[name].project)


def project(name, x):
    with jax.enable_x64(True):
        return np.asarray(projection(name)(x))


points = given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([1e-3, 1.0, 30.0]))
modest = settings(max_examples=25, deadline=None, derandomize=True)


@modest
@points
@pytest.mark.parametrize("name", POLYTOPES)
def test_projection_on_a_polytope_is_the_nearest_point(name, seed, scale):
    """z in the set is nearest to x if and only if <x - z, v - z> <= 0 for every vertex v."""
    vertices = POLYTOPES[name][1]
    x = scale * np.random.default_rng(seed).normal(size=D)
    z = project(name, x)
    slack = 1e-10 * max(1, scale)
    assert np.all((vertices - z) @ (x - z) <= slack)
    for g in np.random.default_rng(seed + 1).normal(size=(5, D)):
        assert g @ z <= np.max(vertices @ g) + 1e-12


@modest
@points
@pytest.mark.parametrize("name", ["l2 ball", "1.5-norm ball"])
def test_projection_on_a_ball_is_along_the_ray(name, seed, scale):
    """For the p-norm ball it is nearest in the map's own divergence, which is radial."""
    p, radius = (2, 1.3) if name == "l2 ball" else (1.5, 0.7)
    x = scale * np.random.default_rng(seed).normal(size=D)
    shrink = min(1, radius / np.linalg.norm(x, p))
    np.testing.assert_allclose(project(name, x), shrink * x, rtol=1e-12)


@pytest.mark.parametrize("name", BOUNDED)
def test_projection_leaves_the_domain_alone_and_is_done_once(name):
    for seed in range(5):
        z = project(name, 3 * np.random.default_rng(seed).normal(size=D))
        np.testing.assert_allclose(project(name, z), z, rtol=1e-12, atol=1e-14)


def test_everything_is_unbounded():
    x = np.array([1e30, -5.0])
    assert parts.everything().project(x) is x
    assert not parts.everything().bounded
    with pytest.raises(BadParameter, match="everything: is not bounded"):
        parts.everything().support(x)


@modest
@points
@pytest.mark.parametrize("name", BOUNDED)
def test_support_is_the_maximum_over_the_domain(name, seed, scale):
    rng = np.random.default_rng(seed)
    g = scale * rng.normal(size=D)
    best = BOUNDED[name].support(g)
    u = maximiser(name, g)
    np.testing.assert_allclose(project(name, u), u, rtol=1e-10, atol=1e-12)  # it is feasible
    np.testing.assert_allclose(best, g @ u, rtol=1e-10)
    for x in rng.normal(size=(10, D)):
        assert g @ project(name, x) <= best + 1e-10 * max(1, scale)


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_support_neither_overflows_nor_vanishes_near_p_one(size):
    """The dual exponent of p = 1.01 is 101: its support tends to the l1 ball's."""
    g = size * np.array([1.0, 0.3, -0.2])
    assert parts.p_ball(1.01, 2.0).support(g) == pytest.approx(2 * size, rel=1e-6)
    assert parts.p_ball(1.01, 2.0).support(np.zeros(3)) == 0


def test_names_state_which_set():
    assert parts.box(-3, 3).title == "box [-3, 3]"
    assert parts.l2_ball(1.5).title == "l2 ball of radius 1.5"
    assert parts.l1_ball(2).title == "l1 ball of radius 2"
    assert parts.p_ball(1.5, 2).title == "1.5-norm ball of radius 2"
    assert parts.box(-3, 3).bounds == (-3, 3)
