"""FedOMD equals a loop written from Mitra et al. 2021: every geometry, sync set and participation."""

import functools

import numpy as np
import pytest

import mainstem as ms
from mainstem import parts
from tests.algorithms.table import agrees, losses
from tests.reference import regret, steps
from tests.reference.fedomd import fedomd as loop

T, K, D = 40, 5, 3
WORLD = losses(T, K, D)
EXPERTS = losses(T, K, D, linear=True)
EVERY = {"every": parts.every(5), "irregular": parts.after_steps([1, 2, 7, 20, 21, 33])}
SAMPLED = np.random.default_rng(3).uniform(size=(T, K)) < 0.5
SAMPLED[6] = False  # at one sync nobody participates


def _run(mirror, problem, world, sync, participation):
    algorithm = ms.fedomd(
        parts.inverse_sqrt(0.4), mirror=mirror, sync=sync, participation=participation
    )
    measure = ["collective", "consensus", "average"]
    return ms.simulate(algorithm, problem, world.stream, steps=T, dtype="float64", measure=measure)


def _loop(world, start, step, sync, sampled):
    synced = set(np.flatnonzero(sync.after(np.arange(1, T + 1))) + 1)
    return loop(
        world.gradient,
        start,
        T,
        K,
        step,
        eta=lambda t: 0.4 / np.sqrt(t),
        sync=synced,
        participants=lambda t: [k for k in range(K) if sampled[t - 1, k]],
    )


@pytest.mark.parametrize("partial", [False, True], ids=["full", "partial"])
@pytest.mark.parametrize("sync", EVERY.values(), ids=EVERY.keys())
@pytest.mark.parametrize("geometry", ["box", "ball", "simplex"])
def test_fedomd_equals_the_papers_loop(geometry, sync, partial):
    sampled = SAMPLED if partial else np.ones((T, K), bool)
    participation = parts.given(sampled) if partial else parts.everyone()
    if geometry == "box":
        mirror, world = parts.euclidean(parts.box(-1, 1)), WORLD
        problem = world.problem(low=-1, high=1)
        step = functools.partial(steps.euclidean_box, low=-1, high=1)
        start = np.zeros(D)
    elif geometry == "ball":
        mirror, world = parts.euclidean(parts.l2_ball(1.2)), WORLD
        problem, start = world.problem(), np.zeros(D)
        step = functools.partial(steps.euclidean_ball, radius=1.2)
    else:
        mirror, world = parts.entropy(), EXPERTS
        problem, start = world.problem(), np.full(D, 1 / D)
        step = steps.entropy_simplex
    run = _run(mirror, problem, world, sync, participation)
    expected = _loop(world, start, step, sync, sampled)
    agrees(run, expected, world.loss)
    collective = regret.collective_loss(expected["models"], world.loss)
    assert np.allclose(run.column("collective"), collective, rtol=0, atol=1e-10)
    consensus = regret.consensus_error(expected["models"])
    assert np.allclose(run.column("consensus"), consensus, rtol=0, atol=1e-10)
    average = regret.average_predictor(expected["models"])
    assert np.allclose(np.ravel(ms.measure.average_model(run)), average, rtol=0, atol=1e-10)


def test_adagrad_retains_its_state_over_syncs():
    algorithm = ms.fedomd(parts.adagrad(0.5, floor=1e-6), sync=parts.every(4))
    run = ms.simulate(algorithm, WORLD.problem(), WORLD.stream, steps=T, dtype="float64")
    models, squares, seen = np.zeros((K, D)), np.zeros((K, D)), []
    for t in range(1, T + 1):
        seen.append(models.copy())
        for k in range(K):
            g = WORLD.gradient(models[k], k, t)
            squares[k] += g**2
            models[k] = models[k] - 0.5 / np.sqrt(squares[k] + 1e-6) * g
        if t % 4 == 0:
            models[:] = models.mean(axis=0)
    agrees(run, {"models": np.array(seen), "server": models[:1]}, WORLD.loss)
