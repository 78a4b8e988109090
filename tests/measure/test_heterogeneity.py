"""sigma_t^2, zeta_t^2, K_t^2 and the path of the minimisers: against the definitions, in NumPy."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mainstem import random
from mainstem.base import Form, constant
from mainstem.errors import BadData
from mainstem.measure import Prefix, heterogeneity, path_length
from mainstem.parts import box, l2_ball
from mainstem.problems import linear, logistic, quadratic
from mainstem.streams import alternating, arrays, generated, sea_quadratic, sea_ridge
from tests.algorithms.table import losses, regression
from tests.streams.replayed import replayed

K, D, T = 5, 3, 12
CURVATURE, RIDGE = 2.5, 0.6
KNOBS = {"noise": 0.7, "spatial": 0.4, "temporal": 0.3, "distance": 1.5, "seed": 3}
# random draws are made in float32, which another program may round otherwise
DRIFTS = {"alternating": 1e-8, "slow": 1e-8, "random": 1e-6}
PROBLEMS = {
    "quadratic": quadratic(D, curvature=CURVATURE),
    "ridge": linear(D, ridge=RIDGE, intercept=False),
}
worlds = pytest.mark.parametrize("name", PROBLEMS)
drifts = pytest.mark.parametrize("drift", DRIFTS)


@functools.cache
def stream(name, drift):
    if name == "quadratic":
        return sea_quadratic(K, dimension=D, curvature=CURVATURE, drift=drift, **KNOBS)
    return sea_ridge(K, dimension=D, ridge=RIDGE, drift=drift, **KNOBS)


@functools.cache
def measured(name, drift):
    return heterogeneity(Prefix(PROBLEMS[name], stream(name, drift), T))


@functools.cache
def targets(name, drift):
    """c + drift_t + offset_m as the streams' docstrings have it: [T, K, D]."""
    direction = np.ones(D) / math.sqrt(D)
    # |x - c|^2 a / 2 at distance s costs a s^2 / 2; and the ridge's least loss changes by 1 / (1 + ridge)
    if name == "quadratic":
        out, spatial = math.sqrt(2 * KNOBS["temporal"] / CURVATURE), 0.4 / CURVATURE**2
    else:
        out, spatial = math.sqrt(2 * KNOBS["temporal"] * (1 + RIDGE)), 0.4
    offsets = np.random.default_rng(KNOBS["seed"]).normal(size=(K, D))
    offsets -= offsets.mean(axis=0)
    offsets *= math.sqrt(spatial / np.mean(np.sum(offsets**2, axis=1)))
    t = np.arange(1, T + 1)
    match drift:
        case "alternating":
            moved = out * np.where(t % 2 == 0, 1, -1)[:, None] * direction
        case "slow":
            moved = math.sqrt(2) * out * np.sin(2 * math.pi * t / 1000)[:, None] * direction
        case "random":
            key = random.root(KNOBS["seed"])
            with jax.enable_x64(True):
                drawn = jax.jit(jax.vmap(lambda t: random.normal(random.fold(key, t), (D,))))(t)
            moved = out / math.sqrt(D) * np.asarray(drawn)
    return 1.5 * direction + moved[:, None] + offsets


class Expected:
    """f_{t,m} for targets c[t, m]: its gradient, and f_t."""

    def __init__(self, name, c):
        self.bend = CURVATURE if name == "quadratic" else 1 + RIDGE
        self.pull = CURVATURE * c if name == "quadratic" else c  # b of each client and step
        square = self.bend if name == "quadratic" else 1.0
        error = KNOBS["noise"] / CURVATURE if name == "quadratic" else KNOBS["noise"]
        self.constant = np.mean(square * np.sum(c**2, axis=2) + error, axis=1) / 2

    def gradients(self, x):
        return self.bend * x - self.pull

    def value(self, x):
        """f_t(x), for one x or one for each step: [T]."""
        pull = self.pull.mean(axis=1)
        return self.bend / 2 * np.sum(x * x, axis=-1) - np.sum(pull * x, axis=-1) + self.constant


@worlds
@drifts
def test_spatial_is_zeta_squared_at_any_model(name, drift):
    """(4): the clients' gradients around the common one; all have the same second derivatives."""
    loss, found = Expected(name, targets(name, drift)), measured(name, drift)
    for x in np.random.default_rng(0).normal(size=(3, D)):
        each = loss.gradients(x)
        apart = np.mean(np.sum((each - each.mean(axis=1, keepdims=True)) ** 2, axis=2), axis=1)
        np.testing.assert_allclose(found.spatial, apart, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.spatial, KNOBS["spatial"], rtol=0, atol=1e-8)


@worlds
@drifts
def test_temporal_is_the_gap_of_the_best_fixed_model(name, drift):
    """(5), from the minimisers, at which gradients are zero."""
    loss, found = Expected(name, targets(name, drift)), measured(name, drift)
    close = functools.partial(np.testing.assert_allclose, rtol=0, atol=DRIFTS[drift])
    each = loss.pull.mean(axis=1) / loss.bend
    best = loss.pull.mean(axis=(0, 1)) / loss.bend
    close(found.minimisers, each)
    close(found.best, best)
    close(found.lowest, loss.value(each))
    close(found.temporal, loss.value(best) - loss.value(each))
    if drift == "alternating":  # as many steps out as back
        close(found.temporal, KNOBS["temporal"])


@worlds
@drifts
def test_against_another_fixed_model(name, drift):
    loss, found = Expected(name, targets(name, drift)), measured(name, drift)
    x = np.array([0.3, -1.2, 0.8])
    each = loss.pull.mean(axis=1) / loss.bend
    worse = loss.bend / 2 * np.sum((x - each) ** 2, axis=1)
    np.testing.assert_allclose(found.against(x), worse, rtol=0, atol=DRIFTS[drift])
    assert np.sum(worse) > np.sum(found.temporal)  # of the best


def test_in_a_domain_minimisers_are_projected():
    """Where the second derivative is the same in all directions, the nearest point is the best."""
    c = np.random.default_rng(0).normal(0.5, 1, size=(T, K, D))
    loss = Expected("quadratic", c)

    def expected(t, k):
        target = constant(c)[t - 1, k]
        square = CURVATURE / 2 * (target @ target) + KNOBS["noise"] / CURVATURE / 2
        return Form(jnp.asarray(CURVATURE), CURVATURE * target, square)

    world = generated(lambda key, t, k: ((), constant(c)[t - 1, k]), K, expected=expected)
    free, best = c.mean(axis=1), c.mean(axis=(0, 1))
    radius = np.linalg.norm(best) / 2
    shrunk = free * np.minimum(1, radius / np.linalg.norm(free, axis=1))[:, None]
    for domain, each, fixed in (
        (l2_ball(radius), shrunk, best / 2),
        (box(0.3, 0.5), np.clip(free, 0.3, 0.5), np.clip(best, 0.3, 0.5)),
    ):
        found = heterogeneity(Prefix(PROBLEMS["quadratic"], world, T, domain=domain))
        np.testing.assert_allclose(found.minimisers, each, rtol=0, atol=1e-8)
        np.testing.assert_allclose(found.best, fixed, rtol=0, atol=1e-8)
        gaps = loss.value(fixed) - loss.value(each)
        np.testing.assert_allclose(found.temporal, gaps, rtol=0, atol=1e-8)
        np.testing.assert_allclose(found.noise, KNOBS["noise"], rtol=0, atol=1e-8)


@drifts
def test_noise_of_the_quadratic_is_its_knob(drift):
    """(8): the gradient is a (x - target), whatever x is, so its variance is the knob."""
    np.testing.assert_allclose(measured("quadratic", drift).noise, 0.7, rtol=0, atol=1e-8)


def test_noise_that_depends_on_the_model_is_not_a_number():
    assert np.isnan(measured("ridge", "slow").noise).all()
    assert measured("ridge", "slow").noise.shape == (T,)


def test_smoothness_is_the_expected_losses_own():
    assert measured("quadratic", "slow").smoothness == pytest.approx(CURVATURE, abs=1e-8)
    assert measured("ridge", "slow").smoothness == pytest.approx(1 + RIDGE, abs=1e-8)


def test_the_alternating_stream_of_fedomd():
    """Means 2 and -2, variance 5: x* is in the middle, 2 away from each, and all clients are alike."""
    found = heterogeneity(Prefix(quadratic(1, low=-3, high=3), alternating(4), 10))
    np.testing.assert_allclose(found.noise, 5, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.spatial, 0, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.best, 0, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.temporal, 2, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.minimisers[:, 0], [-2, 2] * 5, rtol=0, atol=1e-8)
    cut = heterogeneity(Prefix(quadratic(1, low=-3, high=1), alternating(4), 10))
    np.testing.assert_allclose(cut.temporal, [2, 1.5] * 5, rtol=0, atol=1e-8)  # at 1 it costs 1/2


# --- the path -------------------------------------------------------------------------------------


def length(points):
    return sum(np.linalg.norm(b - a) for a, b in itertools.pairwise(points))


def test_path_of_quadratics_is_that_of_the_mean_targets():
    world = losses(T, K, D)
    means = world.a.mean(axis=1)
    found = path_length(Prefix(world.problem(), world.stream, T))
    assert found == pytest.approx(length(means), abs=1e-8)
    found = path_length(Prefix(world.problem(low=0.2, high=1.4), world.stream, T))
    assert found == pytest.approx(length(np.clip(means, 0.2, 1.4)), abs=1e-8)


def test_path_of_the_ridge_is_that_of_each_steps_normal_equations():
    world = regression(T, K, D)
    points = [
        np.linalg.solve(x.T @ x / K + world.ridge * np.eye(D), x.T @ y / K)
        for x, y in zip(world.x, world.y, strict=True)
    ]
    found = path_length(Prefix(world.problem, world.stream, T))
    assert found == pytest.approx(length(points), abs=1e-8)


def test_path_of_a_generated_stream_is_that_of_what_was_drawn():
    drawn = replayed(stream("quadratic", "random"), T, seed=4).hidden
    found = path_length(Prefix(PROBLEMS["quadratic"], stream("quadratic", "random"), T, seed=4))
    assert found == pytest.approx(length(drawn.mean(axis=1)), abs=1e-6)  # float32 draws


def test_those_who_saw_nothing_do_not_move_the_path():
    """Client k is there at every (k + 1)-th step, with its own target plus t; client 0 always."""
    home = np.array([1.0, 4.0, -2.0])

    def sample(key, t, k):
        here = t % (k + 1) == 0
        target = jnp.where(here, jnp.asarray(home)[k] + t, jnp.nan)
        return (), target[None], here.astype(jnp.int32)

    t = np.arange(1, T + 1)[:, None]
    here = t % np.arange(1, 4) == 0
    points = np.sum(here * (home + t), axis=1) / np.sum(here, axis=1)
    found = path_length(Prefix(quadratic(1), generated(sample, 3), T))
    assert found == pytest.approx(np.sum(np.abs(np.diff(points))), abs=1e-8)


def test_a_single_step_goes_nowhere():
    assert path_length(Prefix(PROBLEMS["quadratic"], stream("quadratic", "slow"), 1)) == 0


# --- refusals -------------------------------------------------------------------------------------


def test_refusals():
    draw = np.random.default_rng(0)
    table = arrays(draw.normal(size=(20, D)), draw.integers(0, 2, 20).astype(np.int32), clients=4)
    unknown = Prefix(logistic(D), table, 5)
    with pytest.raises(BadData, match="heterogeneity: the stream does not know its expected losse"):
        heterogeneity(unknown)
    with pytest.raises(BadData, match="wants quadratic losses, whose minimisers are known"):
        path_length(unknown)
    uneven = generated(
        lambda key, t, k: (jnp.ones(D), 1.0),
        2,
        expected=lambda t, k: Form((1.0 + k) * jnp.eye(D), jnp.ones(D), jnp.asarray(1.0)),
    )
    wanted = "heterogeneity: wants second derivatives that are the same at all clients"
    with pytest.raises(BadData, match=wanted):
        heterogeneity(Prefix(PROBLEMS["ridge"], uneven, 5))
