"""The theorems' constants: against closed forms in NumPy on the samples that came."""

import functools
import math

import jax
import numpy as np
import pytest

from mainstem.base import Flat, Sample
from mainstem.errors import BadData, BadParameter
from mainstem.measure import (
    Prefix,
    curvature,
    distance,
    lipschitz,
    mean_curvature,
    mean_smoothness,
    sample_smoothness,
    smoothness,
    variance,
)
from mainstem.measure.constants import row_gradients, row_losses, variances
from mainstem.measure.estimate import EXACT, LEAST, MOST
from mainstem.parts import box, l2_ball, p_ball
from mainstem.problems import (
    bandit,
    batched,
    experts,
    linear,
    logistic,
    mlp,
    personal,
    quadratic,
    softmax,
)
from mainstem.spec import name_of
from mainstem.streams import arrays, by_key, sea_quadratic, sea_ridge, split
from tests.algorithms.table import losses, regression
from tests.measure.test_geometry import DOMAINS, corners, points
from tests.streams.replayed import replayed

T, K, D = 8, 3, 3
BEND, RIDGE, CLASSES = 2.5, 0.1, 4
TABLE, TARGETS = regression(T, K, D), losses(T, K, D).a.reshape(-1, D)
QUADRATIC = quadratic(D, curvature=BEND)
X, Y = TABLE.x.reshape(-1, D), TABLE.y.ravel()
LABELS = np.random.default_rng(5).integers(0, CLASSES, T * K).astype(np.int32)
SQUARES = np.sum(X**2, axis=1)
domains = pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)


@functools.cache
def stream(name):
    """The rows in order, one for each client and step."""
    target = {"quadratic": TARGETS, "ridge": Y, "logistic": LABELS % 2, "softmax": LABELS}[name]
    return arrays(X, target, keys=np.tile(np.arange(K), T), deal=by_key())


@functools.cache
def quadratics(domain=None):
    return Prefix(QUADRATIC, stream("quadratic"), T, domain=domain)


@functools.cache
def ridge(domain=None):
    return Prefix(TABLE.problem, stream("ridge"), T, domain=domain)


@functools.cache
def ridged_logistic():
    return Prefix(logistic(D, ridge=0.3, intercept=False), stream("logistic"), T)


def exactly(found, value):
    """Equal to 1e-8, and declared exact."""
    assert found.how == EXACT
    assert float(found) == pytest.approx(value, abs=1e-8, rel=0)


# --- L --------------------------------------------------------------------------------------------


def quadratic_slopes(at):
    return BEND * np.linalg.norm(at[:, None] - TARGETS, axis=2)


def ridge_slopes(at):
    gradients = (at @ X.T - Y)[:, :, None] * X + RIDGE * at[:, None]
    return np.linalg.norm(gradients, axis=2)


def quadratic_worst(domain):
    """A point at which the steepest loss is steepest."""
    if name_of(domain) == "l2_ball":
        return -1.7 * TARGETS / np.linalg.norm(TARGETS, axis=1, keepdims=True)
    return corners(domain)


def ridge_worst(domain):
    if name_of(domain) == "l2_ball":  # along x, where the error adds to that of zero
        return -1.7 * (np.sign(Y) / np.sqrt(SQUARES))[:, None] * X
    return corners(domain)


@domains
@pytest.mark.parametrize(
    ("prefix", "slopes", "worst"),
    [(quadratics, quadratic_slopes, quadratic_worst), (ridge, ridge_slopes, ridge_worst)],
    ids=["quadratic", "ridge"],
)
def test_lipschitz_on_a_domain_is_reached_and_never_exceeded(prefix, slopes, worst, domain):
    found = lipschitz(prefix(domain))
    exactly(found, np.max(slopes(worst(domain))))
    assert np.max(slopes(points(domain, np.random.default_rng(0)))) <= float(found) + 1e-12


def test_lipschitz_by_formula():
    exactly(lipschitz(quadratics(l2_ball(2))), BEND * (2 + np.linalg.norm(TARGETS, axis=1).max()))
    steepest = (SQUARES + RIDGE) * 2 + np.abs(Y) * np.sqrt(SQUARES)
    exactly(lipschitz(ridge(l2_ball(2))), steepest.max())
    boxed = Prefix(quadratic(D, low=-1, high=2), stream("quadratic"), T)  # the problem's own
    far = np.maximum(np.abs(TARGETS + 1), np.abs(TARGETS - 2))
    exactly(lipschitz(boxed), np.linalg.norm(far, axis=1).max())


def test_lipschitz_without_bounds_is_infinite_where_losses_are_curved():
    assert lipschitz(quadratics()) == lipschitz(ridge())
    assert float(lipschitz(ridge())) == math.inf


def test_lipschitz_of_experts_in_both_norms():
    world = losses(T, K, D, linear=True)
    prefix, each = Prefix(experts(D), world.stream, T), world.a.reshape(-1, D)
    exactly(lipschitz(prefix, "max"), np.abs(each).max())
    exactly(lipschitz(prefix), np.linalg.norm(each, axis=1).max())


def test_lipschitz_of_batches_in_a_ball_is_a_bound():
    """The mean of rank-one losses is not of rank one."""
    rows = arrays(X.reshape(T, K, D), Y.reshape(T, K), clients=1)
    prefix = Prefix(batched(TABLE.problem), rows, T, domain=l2_ball(1.7))
    at = points(l2_ball(1.7), np.random.default_rng(0))
    errors = np.einsum("pd,tkd->ptk", at, TABLE.x) - TABLE.y
    means = np.einsum("ptk,tkd->ptd", errors, TABLE.x) / K + RIDGE * at[:, None]
    found = lipschitz(prefix)
    assert found.how == MOST
    assert np.linalg.norm(means, axis=2).max() <= float(found)


def logistic_slopes(w, rows=X, labels=LABELS % 2):
    signs = np.where(labels == 1, 1, -1)
    return np.exp(-np.logaddexp(0, signs * (rows @ w))) * np.linalg.norm(rows, axis=1)


def random_models(size, scales=(0.1, 1, 10, 100)):
    draw = np.random.default_rng(0)
    return [scale * draw.normal(size=size) for scale in scales for _ in range(50)]


def test_lipschitz_of_logistic_losses_is_approached_and_never_exceeded():
    found = lipschitz(Prefix(logistic(D, intercept=False), stream("logistic"), T))
    exactly(found, np.sqrt(SQUARES.max()))
    assert max(logistic_slopes(w).max() for w in random_models(D)) <= float(found)
    worst = np.argmax(SQUARES)
    wrong = 50 * (1 if LABELS[worst] % 2 == 0 else -1) * X[worst] / SQUARES[worst]
    assert logistic_slopes(wrong).max() == pytest.approx(float(found), abs=1e-8)


def test_lipschitz_of_logistic_losses_with_an_intercept_and_in_a_ball():
    longest = np.sqrt(SQUARES.max() + 1)
    exactly(lipschitz(Prefix(logistic(D), stream("logistic"), T)), longest)
    inside = lipschitz(Prefix(logistic(D, domain=l2_ball(1)), stream("logistic"), T))
    assert inside.how == MOST
    assert float(inside) == pytest.approx(longest, abs=1e-8)


def test_lipschitz_of_ridged_logistic_losses():
    """The penalty has no largest slope; in a ball, the largest that was met."""
    assert float(lipschitz(ridged_logistic())) == math.inf
    prefix = Prefix(ridged_logistic().problem, stream("logistic"), T, domain=l2_ball(9))
    found = lipschitz(prefix)
    met = [row_gradients(prefix, at).max() for at in (prefix.start, prefix.best.params)]
    assert found.how == LEAST
    assert float(found) == pytest.approx(max(met), rel=1e-12)
    assert row_gradients(prefix, np.full(D, 9 / 2)).max() > float(found)


def softmax_parts(weights, bias):
    """Of each sample, the norm of the gradient and the largest second derivative."""
    scores = X @ weights + bias
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    slopes = np.linalg.norm(p - np.eye(CLASSES)[LABELS], axis=1) * np.sqrt(SQUARES + 1)
    bends = p[:, :, None] * np.eye(CLASSES) - p[:, :, None] * p[:, None]
    return slopes, np.linalg.eigvalsh(bends)[:, -1] * (SQUARES + 1)


def test_softmax_constants_are_approached_and_never_exceeded():
    prefix = Prefix(softmax(D, CLASSES), stream("softmax"), T)
    steep, bent = lipschitz(prefix), smoothness(prefix)
    exactly(steep, math.sqrt(2) * np.sqrt(SQUARES.max() + 1))
    exactly(bent, (SQUARES.max() + 1) / 2)
    for model in random_models((D + 1, CLASSES)):
        slopes, bends = softmax_parts(model[1:], model[0])
        assert slopes.max() <= float(steep)
        assert bends.max() <= float(bent) + 1e-12
    none, worst = np.zeros((D, CLASSES)), np.argmax(SQUARES)
    wrong = 99.0 * (np.arange(CLASSES) == (LABELS[worst] + 1) % CLASSES)
    assert softmax_parts(none, wrong)[0].max() == pytest.approx(float(steep), abs=1e-8)
    torn = np.where(np.arange(CLASSES) < 2, 0.0, -99.0)  # between two classes
    assert softmax_parts(none, torn)[1].max() == pytest.approx(float(bent), abs=1e-8)


def test_row_gradients_and_losses():
    prefix, w = ridge(), np.array([0.4, -1.0, 2.0])
    np.testing.assert_allclose(row_gradients(prefix, w), ridge_slopes(w[None])[0], rtol=1e-12)
    paid = 0.5 * (X @ w - Y) ** 2 + 0.5 * RIDGE * w @ w
    np.testing.assert_allclose(row_losses(prefix, w), paid, rtol=1e-12)
    largest = np.abs((X @ w - Y)[:, None] * X + RIDGE * w).max(axis=1)
    np.testing.assert_allclose(row_gradients(prefix, w, "max"), largest, rtol=1e-12)
    prefix = Prefix(softmax(D, CLASSES), stream("softmax"), T)
    model = np.random.default_rng(1).normal(size=(D + 1, CLASSES))  # the bias comes first
    slopes = softmax_parts(model[1:], model[0])[0]
    np.testing.assert_allclose(row_gradients(prefix, model.ravel()), slopes, rtol=1e-12)


# --- second derivatives ---------------------------------------------------------------------------


def test_second_derivatives_of_quadratics():
    prefix = quadratics()
    for measure in (smoothness, curvature, mean_smoothness, mean_curvature):
        exactly(measure(prefix), BEND)
    assert float(sample_smoothness(prefix)) == pytest.approx(BEND, abs=1e-8)


def test_second_derivatives_of_the_ridge():
    prefix = ridge()
    spectrum = np.linalg.eigvalsh(X.T @ X / len(X) + RIDGE * np.eye(D))
    exactly(smoothness(prefix), SQUARES.max() + RIDGE)
    exactly(curvature(prefix), RIDGE)  # a loss is flat across its own x
    exactly(mean_smoothness(prefix), spectrum[-1])
    exactly(mean_curvature(prefix), spectrum[0])


def test_second_derivatives_along_a_line():
    """With one feature and no intercept every single loss is curved."""
    rows = arrays(X[:, :1], Y, clients=1)
    prefix = Prefix(linear(1, ridge=RIDGE, intercept=False), rows, T * K)
    exactly(curvature(prefix), np.min(X[:, 0] ** 2) + RIDGE)
    exactly(smoothness(prefix), np.max(X[:, 0] ** 2) + RIDGE)


def test_constants_of_a_generated_ridge_are_those_of_what_was_drawn():
    world = sea_ridge(K, dimension=D, ridge=RIDGE, spatial=0.5, temporal=0.3)
    prefix = Prefix(TABLE.problem, world, T, seed=7, domain=l2_ball(1.7))
    drawn = replayed(world, T, seed=7)
    x, y = drawn.shown.reshape(-1, D), drawn.hidden.ravel()
    squares, rel = np.sum(x**2, axis=1), 1e-6  # drawn in float32
    matrix = x.T @ x / len(x) + RIDGE * np.eye(D)
    assert float(smoothness(prefix)) == pytest.approx(squares.max() + RIDGE, rel=rel)
    assert float(mean_curvature(prefix)) == pytest.approx(np.linalg.eigvalsh(matrix)[0], rel=rel)
    steepest = 1.7 * (squares + RIDGE) + np.abs(y) * np.sqrt(squares)
    assert float(lipschitz(prefix)) == pytest.approx(steepest.max(), rel=rel)


def test_an_intercept_counts_as_a_feature_and_a_personal_loss_twice():
    wide = np.column_stack([X, np.ones(len(X))])
    with_intercept = Prefix(linear(D, ridge=RIDGE), stream("ridge"), T, domain=l2_ball(2))
    squares = SQUARES + 1
    exactly(smoothness(with_intercept), squares.max() + RIDGE)
    steepest = 2 * (squares + RIDGE) + np.abs(Y) * np.sqrt(squares)
    exactly(lipschitz(with_intercept), steepest.max())
    spectrum = np.linalg.eigvalsh(wide.T @ wide / len(X) + RIDGE * np.eye(D + 1))
    exactly(mean_smoothness(with_intercept), spectrum[-1])
    rows = split(stream("ridge"), shared=[0, 1], own=[2])
    prefix = Prefix(personal(2, 1), rows, T, domain=l2_ball(2))  # (prediction - y)^2, not halved
    exactly(smoothness(prefix), 2 * SQUARES.max())
    exactly(lipschitz(prefix), 2 * np.max(2 * SQUARES + np.abs(Y) * np.sqrt(SQUARES)))
    exactly(curvature(prefix), 0)


def logistic_bends(w):
    p = 1 / (1 + np.exp(-X @ w))
    return p * (1 - p) * SQUARES


def test_second_derivatives_of_logistic_losses():
    prefix = Prefix(logistic(D, intercept=False), stream("logistic"), T)
    found = smoothness(prefix)
    exactly(found, logistic_bends(np.zeros(D)).max())  # reached at zero
    assert max(logistic_bends(w).max() for w in random_models(D, (0.1, 1))) <= float(found)
    exactly(curvature(prefix), 0)
    exactly(mean_curvature(prefix), 0)
    ridged = ridged_logistic()
    exactly(smoothness(ridged), SQUARES.max() / 4 + 0.3)
    exactly(curvature(ridged), 0.3)  # approached far out
    assert mean_curvature(ridged) == curvature(ridged)
    mean = mean_smoothness(ridged)
    top = np.linalg.eigvalsh(X.T @ X / len(X) / 4 + 0.3 * np.eye(D))[-1]  # at zero, the first model
    assert mean.how == LEAST
    assert top * (1 - 1e-3) <= float(mean) <= top * (1 + 1e-9)


def test_sample_smoothness_is_that_of_the_dense_matrices():
    """lambda_max(E H^2) / lambda_max(E H), by the power method to about 1e-3."""
    for prefix, single in (
        (ridge(), X[:, :, None] * X[:, None] + RIDGE * np.eye(D)),
        (ridged_logistic(), X[:, :, None] * X[:, None] / 4 + 0.3 * np.eye(D)),
    ):
        once, twice = (np.linalg.eigvalsh(m.mean(axis=0))[-1] for m in (single, single @ single))
        assert float(sample_smoothness(prefix)) == pytest.approx(twice / once, rel=2e-3)


@functools.cache
def network():
    return Prefix(mlp(D, hidden=(4,)), stream("ridge"), T)


def test_constants_of_a_network_are_what_was_seen_at_least():
    """At the first model all is as the dense matrices have it; other models are worse."""
    prefix = network()
    start, worse = prefix.start, 3 * prefix.start
    steep, bent, mean = lipschitz(prefix), smoothness(prefix), mean_smoothness(prefix)
    assert [each.how for each in (steep, bent, mean)] == [LEAST] * 3
    assert distance(prefix).how == "about"
    assert float(steep) == pytest.approx(row_gradients(prefix, start).max(), rel=1e-12)
    assert row_gradients(prefix, worse).max() > float(steep)
    with jax.enable_x64(True):
        bends = jax.jit(jax.vmap(jax.hessian(Flat(prefix.problem).loss), in_axes=(None, 0)))
        here, there = (np.asarray(bends(at, Sample(X, Y))) for at in (start, worse))
    largest = np.abs(np.linalg.eigvalsh(here)).max()
    assert 0.95 * largest <= float(bent) <= largest * (1 + 1e-9)
    assert np.abs(np.linalg.eigvalsh(there)).max() > float(bent)
    top = np.abs(np.linalg.eigvalsh(here.mean(axis=0))).max()
    assert top * (1 - 1e-2) <= float(mean) <= top * (1 + 1e-9)


# --- at the best model ----------------------------------------------------------------------------


def normal_equations(x, y):
    return np.linalg.solve(x.T @ x / len(x) + RIDGE * np.eye(x.shape[1]), x.T @ y / len(x))


def test_distance_and_variance_of_quadratics():
    """Definition 1 of Kwon et al. 2023, at the mean target or at the nearest point to it."""
    best, domain = TARGETS.mean(axis=0), box(0.8, 1.3)
    exactly(distance(quadratics()), np.linalg.norm(best))
    exactly(variance(quadratics()), np.mean(quadratic_slopes(best[None]) ** 2))
    inside = np.clip(best, 0.8, 1.3)
    assert np.any(inside != best)
    exactly(distance(quadratics(domain)), np.linalg.norm(inside - 0.8))  # from the first model
    exactly(variance(quadratics(domain)), np.mean(quadratic_slopes(inside[None]) ** 2))


@pytest.mark.parametrize("world", [TABLE.stream, stream("ridge")], ids=["replayed", "rows"])
def test_distance_and_variance_of_the_ridge(world):
    prefix = Prefix(TABLE.problem, world, T)
    best = normal_equations(X, Y)
    exactly(distance(prefix), np.linalg.norm(best))
    exactly(variance(prefix), np.mean(ridge_slopes(best[None]) ** 2))
    expected = []
    for t in (2, 5, T):
        some = slice(0, t * K)
        slopes = ridge_slopes(normal_equations(X[some], Y[some])[None])[0, some]
        expected.append(np.mean(slopes**2))
    found = variances(prefix, [2, 5, T])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


def test_rows_that_come_again_count_again():
    few = arrays(X[:7], Y[:7], clients=2)
    prefix = Prefix(TABLE.problem, few, 10, seed=3)
    came = replayed(few, 10, seed=3)
    x, y = came.shown.reshape(-1, D), came.hidden.ravel()
    assert len(np.unique(y)) < len(y) == 20
    best = normal_equations(x, y)
    slopes = (x @ best - y)[:, None] * x + RIDGE * best
    exactly(variance(prefix), np.mean(np.sum(slopes**2, axis=1)))
    spectrum = np.linalg.eigvalsh(x.T @ x / len(x) + RIDGE * np.eye(D))
    exactly(mean_curvature(prefix), spectrum[0])
    exactly(mean_smoothness(prefix), spectrum[-1])


def test_variance_of_generated_quadratics_is_that_of_what_was_drawn():
    world = sea_quadratic(K, dimension=D, curvature=BEND, spatial=0.5, temporal=0.3)
    prefix = Prefix(QUADRATIC, world, T, seed=7)
    drawn = replayed(world, T, seed=7).hidden.reshape(-1, D)
    away = BEND**2 * np.mean(np.sum((drawn - drawn.mean(axis=0)) ** 2, axis=1))
    assert float(variance(prefix)) == pytest.approx(away, rel=1e-6)  # drawn in float32


def test_distance_and_variance_of_logistic_losses():
    """By Newton's method in NumPy."""
    w, signs = np.zeros(D), np.where(LABELS % 2 == 1, 1.0, -1.0)
    for _ in range(30):
        wrong = 1 / (1 + np.exp(signs * (X @ w)))
        slopes = -(signs * wrong)[:, None] * X + 0.3 * w
        bends = (X * (wrong * (1 - wrong))[:, None]).T @ X / len(X) + 0.3 * np.eye(D)
        w = w - np.linalg.solve(bends, slopes.mean(axis=0))
    prefix = ridged_logistic()
    off = np.sqrt(2 * prefix.best.gaps[-1] / T / 0.3)  # as far as the certificate lets it be
    assert off < 1e-4
    assert float(distance(prefix)) == pytest.approx(np.linalg.norm(w), abs=off)
    steep = 2 * np.sqrt(SQUARES.max()) * (SQUARES.max() / 4 + 0.3)  # and so the squared slopes
    assert float(variance(prefix)) == pytest.approx(np.mean(np.sum(slopes**2, 1)), abs=steep * off)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"problem": "linear"}, BadParameter, "problem must be a problem such as linear"),
        ({"stream": X}, BadParameter, "stream must be a stream such as digits"),
        ({"steps": 0}, BadParameter, "steps must be an integer of at least 1 and at most 8, got 0"),
        ({"steps": 9}, BadParameter, "steps must be an integer of at least 1 and at most 8, got 9"),
        ({"seed": -1}, BadParameter, "seed must be an integer of at least 0, got -1"),
        ({"radius": 0}, BadParameter, "radius must be above 0, got 0"),
        (
            {"problem": bandit(TABLE.problem, actions=2, period=3)},
            BadData,
            "what is seen depends on what was decided: measure a run instead",
        ),
    ],
)
def test_a_prefix_refuses(given, error, message):
    right = {"problem": TABLE.problem, "stream": TABLE.stream, "steps": T}
    with pytest.raises(error, match=f"prefix: {message}"):
        Prefix(**(right | given))


def test_measures_refuse():
    with pytest.raises(BadParameter, match="lipschitz: norm must be one of l2, max, got 'l1'"):
        lipschitz(ridge(), "l1")
    with pytest.raises(BadData, match="lipschitz: the max norm is for linear losses, such as exp"):
        lipschitz(quadratics(), "max")
    with pytest.raises(BadParameter, match="domain must be a box, a ball or the simplex, got"):
        lipschitz(quadratics(p_ball(1.5, 1.0)))
    with pytest.raises(BadData, match="curvature: the problem is not convex"):
        curvature(network())
    with pytest.raises(BadData, match="curvature: the problem is not convex"):
        mean_curvature(network())
