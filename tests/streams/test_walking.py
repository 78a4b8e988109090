"""The walking line: its walk, its agents, and the minimiser that it claims to know."""

import jax
import numpy as np
import pytest
from scipy import stats

from mainstem.base import cast
from mainstem.errors import BadParameter
from mainstem.streams import walking
from mainstem.streams.walking import least_risk
from tests.streams.replayed import replayed

K = 5


def test_the_walk_has_the_stated_variance():
    """Increments are normal, independent, of variance `drift` in each coordinate."""
    steps, drift = 5000, 0.04
    path = walking(K, drift=drift).chunk(0, 1, steps)[:, 0]
    np.testing.assert_array_equal(path[1:, 0], path[:-1, 1])  # before is what was now
    increments = (path[:, 1] - path[:, 0]) / np.sqrt(drift)
    assert stats.kstest(increments.ravel(), "norm").pvalue > 1e-3
    sure = 4.5 / np.sqrt(steps)
    assert abs(np.corrcoef(increments.T)[0, 1]) < sure
    assert abs(np.corrcoef(increments[1:, 0], increments[:-1, 0])[0, 1]) < sure
    assert np.abs(increments.var(axis=0) - 1).max() < sure * np.sqrt(2)


def test_pieces_do_not_depend_on_how_the_walk_is_cut():
    stream = walking(K, drift=0.1)
    whole = stream.chunk(3, 1, 40)
    assert whole.shape == (40, K, 2, 2)
    np.testing.assert_array_equal(stream.chunk(3, 11, 25), whole[10:25])
    assert not np.allclose(stream.chunk(4, 1, 40), whole)
    still = walking(K, start=[1.0, 2.0]).chunk(3, 1, 9)
    np.testing.assert_array_equal(still, np.broadcast_to([1.0, 2.0], still.shape))


def test_agents_differ_as_stated():
    agents = walking(4000, spread=0.25).drawn(0).each
    assert stats.kstest(agents.offsets.ravel() / 0.5, "norm").pvalue > 1e-3
    assert stats.kstest(agents.scales**2, stats.uniform(0.5, 1).cdf).pvalue > 1e-3
    alone = walking(3, spread=0).drawn(0).each
    assert not alone.offsets.any()


def test_labels_are_the_side_of_each_agents_own_line():
    counts = [3, 9, 4, 9, 1]
    stream = walking(K, holds=counts, drift=0.1, spread=0.5)
    got, agents, lines = replayed(stream, 30), stream.drawn(0).each, stream.chunk(0, 1, 30)[:, :, 1]
    side = np.einsum("tkni,tki->tkn", got.shown, lines + agents.offsets)
    np.testing.assert_array_equal(got.hidden, side > 0)
    np.testing.assert_array_equal(got.count, np.broadcast_to(counts, (30, K)))
    spread = got.shown.std(axis=(0, 2, 3)) / agents.scales
    np.testing.assert_allclose(spread, 1, atol=4.5 / np.sqrt(2 * 30 * 9 * 2))
    assert replayed(walking(2, holds=7), 1).count is None


def slope(w, lines, scales, ridge, angles=400, lengths=400):
    """The aggregate risk's gradient at w, by polar coordinates: y h has a Rayleigh length and an
    angle that is uniform in the half-plane of the line."""
    nodes, weights = np.polynomial.legendre.leggauss(angles)
    turn = np.pi / 2 * nodes
    far, shares = np.polynomial.legendre.leggauss(lengths)
    r = 5.5 * (far + 1)
    mass = 5.5 * shares * r * np.exp(-(r**2) / 2)
    total = ridge * w
    for line, scale in zip(lines, scales, strict=True):
        angle = np.arctan2(line[1], line[0]) + turn
        rays = scale * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        wrong = 1 / (1 + np.exp(np.outer(r, rays @ w)))
        total = total - np.einsum("r,a,ra,ai->i", mass * r, weights / 2, wrong, rays) / len(lines)
    return total


@pytest.mark.parametrize(("ridge", "sure"), [(2.0, 1e-10), (0.3, 1e-6)])
def test_least_risk_is_a_minimiser(ridge, sure):
    """Where its gradient is zero, the ridge making it strongly convex."""
    rng = np.random.default_rng(0)
    lines = np.array([1.0, 2.0]) + rng.normal(size=(K, 2))
    scales = np.sqrt(rng.uniform(0.5, 1.5, K))
    with jax.enable_x64(True):
        found = np.asarray(jax.jit(least_risk, static_argnums=2)(lines, scales, ridge))
    assert np.linalg.norm(found) > 0.05
    assert np.abs(slope(found, lines, scales, ridge)).max() < sure


def test_the_gradient_over_many_samples_vanishes_at_the_minimiser():
    """The samples of step t are those of the risk whose minimiser step t + 1 is measured against."""
    count, ridge = 40_000, 0.5
    stream = walking(K, holds=count, drift=0.2, spread=0.2, ridge=ridge)
    got = replayed(stream, 1)
    pieces = cast(stream.chunk(0, 1, 2), "float64")
    with jax.enable_x64(True):
        drawn, best = cast(stream.drawn(0), "float64"), jax.jit(stream.minimiser)
        before, now = (np.asarray(best(drawn, pieces[n][0], n + 1)) for n in (0, 1))
    x, signs = got.shown[0], 2 * got.hidden[0] - 1

    def gradients(w):
        margins = signs * (x @ w)
        return -(signs / (1 + np.exp(margins)))[..., None] * x + ridge * w

    each = gradients(now)
    error = each.std(axis=1).max() / np.sqrt(count * K)
    assert np.abs(each.mean(axis=(0, 1))).max() < 4.5 * error
    assert np.abs(gradients(before).mean(axis=(0, 1))).max() > 10 * error  # another one it is not


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"clients": 0}, "clients must be an integer of at least 1, got 0"),
        ({"holds": 0}, "holds must be whole numbers of at least 1, got 0"),
        ({"holds": [2.5, 1, 1]}, "holds must be whole numbers"),
        ({"holds": [3, 4]}, "holds must have one entry for each of 3 clients"),
        ({"drift": -0.1}, "drift must be at least 0"),
        ({"spread": -0.1}, "spread must be at least 0"),
        ({"ridge": 0.0}, "ridge must be above 0"),
        ({"start": [1.0]}, "start must be two numbers"),
        ({"start": [0.0, 0.0]}, "start must be two numbers, not both 0"),
        ({"start": [np.nan, 0.0]}, "start must be two numbers"),
        ({"start": "here"}, "start must be two numbers"),
    ],
)
def test_refusals(given, message):
    with pytest.raises(BadParameter, match=f"walking: {message}"):
        walking(**({"clients": 3} | given))
