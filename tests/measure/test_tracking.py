"""The terms of eq. (28) of Rizk et al. 2020 against a direct simulation of one step's gradients."""

import functools

import jax
import numpy as np
import pytest

from mainstem.errors import BadParameter
from mainstem.measure.tracking import Tracking, tracking
from mainstem.problems import batched, logistic
from mainstem.streams import alternating, walking

K, L, RIDGE = 4, 2, 0.5
HOLDS, SIZES, EPOCHS = np.array([20, 30, 40, 25]), np.array([4, 30, 5, 1]), np.array([1, 2, 3, 4])
PROBLEM = batched(logistic(2, ridge=RIDGE, intercept=False))


DRIFT = 1e-10  # of the line, which is as good as still
WORLD = walking(K, holds=HOLDS, spread=0.5, ridge=RIDGE, start=[1.0, -2.0], drift=DRIFT)


@functools.cache
def measured():
    return tracking(
        PROBLEM, WORLD, participants=L, epochs=EPOCHS, batch=SIZES, steps=400, points=399, seeds=1
    )


@functools.cache
def simulated():
    """Many steps of all agents at the minimiser, in NumPy: each agent's mean gradient over its epochs, the
    same over all that it holds, and the Hessian."""
    repeats, rng = 4000, np.random.default_rng(0)
    agents = WORLD.drawn(0).each
    drawn = []
    for k in range(K):
        line = np.array([1.0, -2.0]) + agents.offsets[k]
        x = agents.scales[k] * rng.normal(size=(repeats, HOLDS[k], 2))
        drawn.append((x, np.where(x @ line > 0, 1.0, -1.0)))
    w = np.zeros(2)
    for _ in range(20):  # Newton's method on all of them: the minimiser, nearly
        slope, hessian = RIDGE * w, RIDGE * np.eye(2)
        for x, y in drawn:
            wrong = 1 / (1 + np.exp(y * (x @ w)))
            flat, weights = x.reshape(-1, 2), (wrong * (1 - wrong)).ravel()
            slope = slope - np.mean((y * wrong)[..., None] * x, axis=(0, 1)) / K
            hessian = hessian + (flat * weights[:, None]).T @ flat / len(flat) / K
        w = w - np.linalg.solve(hessian, slope)
    sent, whole = [], []
    for k, (x, y) in enumerate(drawn):
        slopes = -(y / (1 + np.exp(y * (x @ w))))[..., None] * x + RIDGE * w
        whole.append(slopes.mean(axis=1))
        epochs = []
        for _ in range(EPOCHS[k]):
            chosen = np.argsort(rng.uniform(size=(repeats, HOLDS[k])), axis=1)[:, : SIZES[k]]
            epochs.append(np.take_along_axis(slopes, chosen[..., None], axis=1).mean(axis=1))
        sent.append(np.mean(epochs, axis=0))
    return np.stack(sent), np.stack(whole), hessian  # [K, repeats, 2]


def test_noise_is_what_minibatches_add():
    """Eq. (25): 3/L times the mean over agents; an agent that takes all it holds adds none."""
    sent, whole, _ = simulated()
    added = np.mean(np.sum((sent - whole) ** 2, axis=2), axis=1)
    assert added[1] < 1e-20
    assert measured().noise == pytest.approx(3 / L * added.mean(), rel=0.1)


def test_disagreement_is_how_far_the_agents_own_slopes_are_from_zero():
    """Eq. (26), with tau_eps = (K - L) / (K - 1)."""
    _, whole, _ = simulated()
    apart = np.mean(np.sum(whole.mean(axis=1) ** 2, axis=1))
    expected = 2 / L * (K - L) / (K - 1) * apart
    assert measured().disagreement == pytest.approx(expected, rel=0.15)


def test_what_rises_with_the_step_is_the_covariance_of_a_steps_gradient():
    """tr(H^-1 R) / 2, R that of the mean over L agents drawn without replacement."""
    sent, _, hessian = simulated()
    rng = np.random.default_rng(1)
    participants = np.argsort(rng.uniform(size=(sent.shape[1], K)), axis=1)[:, :L]
    steps = np.mean(sent[participants.T, np.arange(sent.shape[1])], axis=0)
    shaken = steps.T @ steps / len(steps)
    expected = np.trace(np.linalg.solve(hessian, shaken)) / 2
    assert measured().rising == pytest.approx(expected, rel=0.1)


def test_drift_is_the_minimisers_own():
    """The mean squared change over the measured steps: here all of them."""
    with jax.enable_x64(True):
        over_steps = jax.jit(jax.vmap(WORLD.minimiser, in_axes=(None, 0, 0)))
        best = over_steps(WORLD.drawn(0), WORLD.chunk(0, 2, 401)[:, 0], np.arange(2, 402))
        moved = np.diff(np.asarray(best), axis=0)
    assert measured().drift == pytest.approx(np.mean(np.sum(moved**2, axis=1)), rel=1e-6)
    assert 0 < measured().drift < 2 * DRIFT
    assert measured().best_step < 1e-3


def test_the_best_step_balances():
    found = Tracking(1, 1, 1, rising=2.0, falling=0.5)
    assert found.best_step == 0.5
    assert all(found.floor(0.5) < found.floor(step) for step in (0.4, 0.6))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"problem": logistic}, "problem must be a problem such as batched"),
        ({"stream": alternating(K)}, "stream must know its minimiser, as walking does"),
        ({"participants": 0}, "participants must be an integer of at least 1 and at most 4, got 0"),
        ({"participants": 5}, "participants must be an integer of at least 1 and at most 4, got 5"),
        ({"first": 1}, "first must be an integer of at least 2, got 1"),
        ({"steps": 1}, "steps must be an integer of at least 2, got 1"),
    ],
)
def test_refusals(given, message):
    right = {"problem": PROBLEM, "stream": WORLD, "participants": L}
    with pytest.raises(BadParameter, match=f"tracking: {message}"):
        tracking(**(right | given))
