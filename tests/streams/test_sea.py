"""FedSEA's streams: the three knobs are exactly what the paper's definitions measure."""

import jax
import numpy as np
import pytest

from mainstem.base import Sample
from mainstem.problems import linear, quadratic
from mainstem.streams import sea_quadratic, sea_ridge
from tests.streams.test_generated import drawn

K, D, T = 6, 3, 4000
KNOBS = {"noise": 0.7, "spatial": 0.4, "temporal": 0.3, "distance": 1.5, "seed": 3}
WORLDS = {
    "quadratic": (
        lambda **knobs: sea_quadratic(K, dimension=D, curvature=2.5, **{**KNOBS, **knobs}),
        quadratic(D, curvature=2.5),
    ),
    "ridge": (
        lambda **knobs: sea_ridge(K, dimension=D, ridge=0.6, **{**KNOBS, **knobs}),
        linear(D, ridge=0.6, intercept=False),
    ),
}
worlds = pytest.mark.parametrize("name", WORLDS)


def forms(stream, steps=(1, 2)):
    """The expected losses f_{t,m} as (A, b, c), by step and client."""
    with jax.enable_x64(True):
        out = []
        for t in steps:
            row = [jax.device_get(stream.expected(t, k)) for k in range(stream.clients)]
            out.append([(np.eye(D) * form.matrix, form.vector, form.constant) for form in row])
        return out


def mean_form(row):
    return [np.mean([form[i] for form in row], axis=0) for i in range(3)]


def value(form, x):
    return x @ form[0] @ x / 2 - form[1] @ x + form[2]


@worlds
def test_expected_forms_are_the_means_of_the_losses(name):
    make, problem = WORLDS[name]
    stream = make(drift="alternating")
    samples = drawn(stream, T, K)
    x = np.array([0.5, -1.0, 0.2], np.float32)
    seen = samples.hidden if name == "quadratic" else Sample(samples.shown, samples.hidden)
    losses = np.asarray(jax.jit(jax.vmap(jax.vmap(lambda s: problem.loss(x, s))))(seen), np.float64)
    for start, row in enumerate(forms(stream)):
        for k in range(K):
            mine = losses[start::2, k]
            error = abs(mine.mean() - value(row[k], x))
            assert error < 4.5 * mine.std() / np.sqrt(len(mine))


@worlds
def test_spatial_is_zeta_squared_and_offsets_have_mean_zero(name):
    """(4): the mean squared distance of the clients' gradients from their mean, at any x."""
    stream = WORLDS[name][0]()
    for x in np.random.default_rng(0).normal(size=(3, D)):
        for row in forms(stream):
            gradients = np.array([A @ x - b for A, b, _ in row])
            away = gradients - gradients.mean(axis=0)
            assert np.mean(np.sum(away**2, axis=1)) == pytest.approx(0.4, rel=1e-6)
            center = mean_form(row)
            np.testing.assert_allclose(gradients.mean(axis=0), center[0] @ x - center[1], atol=1e-9)
    alike = forms(WORLDS[name][0](spatial=0.0))[0]
    np.testing.assert_allclose([form[1] for form in alike], [alike[0][1]] * K, atol=1e-12)


@worlds
@pytest.mark.parametrize(
    ("drift", "steps", "tolerance"),
    [
        ("alternating", (1, 2), 1e-6),
        ("slow", range(1, 1001), 1e-6),
        ("random", range(1, 801), 0.13),
    ],
)
def test_temporal_is_the_mean_of_k_squared(name, drift, steps, tolerance):
    """(5): how much worse the best fixed point is than the best point of each step."""
    stream = WORLDS[name][0](drift=drift, spatial=0.0)
    with jax.enable_x64(True):
        A, b, c = jax.device_get(
            jax.jit(jax.vmap(lambda t: stream.expected(t, 0)))(np.array(steps))
        )
    A = A[0] * np.eye(D)
    best = np.linalg.solve(A, b.mean(axis=0))
    each = np.linalg.solve(A, b.T).T
    gaps = [
        value((A, b[i], c[i]), best) - value((A, b[i], c[i]), each[i]) for i in range(len(steps))
    ]
    assert np.min(gaps) >= -1e-9
    assert np.mean(gaps) == pytest.approx(0.3, rel=tolerance)


@worlds
def test_distance_is_that_of_the_mean_target_from_the_origin(name):
    stream = WORLDS[name][0](temporal=0.0)
    A, b, _ = mean_form(forms(stream)[0])
    target = b if name == "ridge" else np.linalg.solve(A, b)
    assert np.linalg.norm(target) == pytest.approx(1.5, rel=1e-6)


def test_noise_is_sigma_squared_of_the_quadratic():
    """(8): the variance of the gradient curvature (x - target), whatever x."""
    stream = WORLDS["quadratic"][0](temporal=0.0, spatial=0.0)
    gradients = 2.5 * drawn(stream, T, K).hidden.reshape(-1, D)
    total = gradients.var(axis=0).sum()
    assert abs(total - 0.7) < 4.5 * 0.7 * np.sqrt(2 / (D * len(gradients)))


def test_noise_is_the_variance_of_the_label_in_the_ridge():
    samples = drawn(WORLDS["ridge"][0](temporal=0.0, spatial=0.0), T, K)
    x, y = samples.shown.reshape(-1, D), samples.hidden.ravel()
    error = y - x @ (1.5 / np.sqrt(D) * np.ones(D))
    assert abs(error.var() - 0.7) < 4.5 * 0.7 * np.sqrt(2 / len(error))
    assert np.abs(np.cov(x.T) - np.eye(D)).max() < 4.5 * np.sqrt(2 / len(x))


def test_seeds_move_the_offsets():
    first, again, other = (forms(WORLDS["quadratic"][0](seed=s))[0][0][1] for s in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert np.any(np.abs(first - other) > 1e-3)
