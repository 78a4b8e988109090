"""Centred clipping: it equals the loop, and lies of one site in four harm nobody else."""

import numpy as np
import pytest

import mainstem as ms
from benchmarks.guard import ALGORITHMS, FEATURES, STEPS, honest_loss, lying, rows, stream
from tests.algorithms.table import tabled

BETA = 0.8


def loop(x, y, step, period=1):
    """FedOGD with centred clipping; with a period FedOMD: clients send models after local steps."""
    x = np.concatenate([x, np.ones_like(x[..., :1])], axis=-1)  # the intercept
    steps, clients, features = x.shape
    models, average = np.zeros((clients, features)), np.zeros((clients, features))
    start, centre, losses = np.zeros(features), np.zeros(features), []
    for t in range(steps):
        predicted = np.einsum("kd,kd->k", x[t], models)
        losses.append(np.mean((predicted - y[t]) ** 2) / 2)
        gradients = (predicted - y[t])[:, None] * x[t]
        if period > 1:
            models = models - step * gradients
        if (t + 1) % period:
            continue
        message = models - start if period > 1 else gradients
        average = message if t + 1 == period else BETA * average + (1 - BETA) * message
        for _ in range(3):
            far = np.linalg.norm(average - centre, axis=1)
            radius = np.sort(far)[(clients - 1) // 2]
            centre = centre + np.mean(
                [min(1, radius / d) * (m - centre) for m, d in zip(average, far, strict=True)], 0
            )
        start = start + centre if period > 1 else start - step * centre
        models = np.tile(start, (clients, 1))
    return np.array(losses), start


@pytest.mark.parametrize("period", [1, 4])
def test_it_is_the_loop(period):
    x, y = rows(2)
    of = ms.fedogd(0.05) if period == 1 else ms.fedomd(0.05, sync=ms.parts.every(period))
    algorithm = ms.centred_clipping(of, momentum=BETA)
    given = {"steps": STEPS, "dtype": "float64", "measure": ()}
    run = ms.simulate(algorithm, ms.problems.linear(FEATURES), stream(x, y), **given)
    losses, model = loop(x, y, 0.05, period)
    assert np.allclose(run.loss, losses, rtol=1e-10, atol=1e-10)
    assert np.allclose(run.model, model, rtol=1e-10, atol=1e-10)


def test_of_residuals_it_is_the_loop():
    """FedRes.SGD sends the gradient of the shared part, which is smaller than the model."""
    draw = np.random.default_rng(4)
    xg, xl = draw.normal(size=(60, 5, 3)), draw.normal(size=(60, 5, 2))
    y = xg @ draw.normal(size=3) + draw.normal(size=(60, 5))
    algorithm = ms.fedres_sgd(0.02, own_step=0.05, message="gradient")
    run = ms.simulate(
        ms.centred_clipping(algorithm, momentum=BETA),
        ms.problems.personal(3, 2),
        tabled(((xg, xl), y)),
        steps=60,
        dtype="float64",
    )
    shared, own = np.zeros(3), np.zeros((5, 2))
    centre, average, losses = np.zeros(3), None, []
    for t in range(60):
        residual = xg[t] @ shared + np.sum(xl[t] * own, axis=1) - y[t]
        losses.append(np.mean(residual**2))
        message = 2 * residual[:, None] * xg[t]
        average = message if average is None else BETA * average + (1 - BETA) * message
        for _ in range(3):
            far = np.linalg.norm(average - centre, axis=1)
            shares = np.minimum(1, np.sort(far)[2] / far)
            centre = centre + np.mean(shares[:, None] * (average - centre), axis=0)
        shared = shared - 0.02 * 5 * centre
        own = own - 0.05 * 2 * residual[:, None] * xl[t]
    assert np.allclose(run.loss, losses, rtol=1e-10, atol=1e-10)
    assert np.allclose(run.model, shared, rtol=1e-10, atol=1e-10)


LIES = ["flipped sign", "constant", "random", "1e30", "not a number"]


@pytest.mark.parametrize(
    "name",
    ["fedogd", *(pytest.param(n, marks=pytest.mark.slow) for n in ALGORITHMS if n != "fedogd")],
)
@pytest.mark.parametrize("lie", LIES)
def test_lies_of_one_site_harm_nobody_else(name, lie):
    x, y = rows(1)
    alone = honest_loss(ALGORITHMS[name], x[:, :-1], y[:, :-1])
    lied = ms.guarded(ms.centred_clipping(lying(ALGORITHMS[name], lie)))
    assert honest_loss(lied, x, y) < 2 * alone
