"""Error feedback equals a loop written from Karimireddy et al. 2019, at clients that are sampled sometimes."""

import jax
import numpy as np
import pytest

import mainstem as ms
from mainstem import parts, random
from tests.algorithms.table import agrees, regression

T, K, D, ETA, RATE, PERIOD = 36, 5, 4, 0.05, 0.6, 2
WORLD = regression(T, K, D)
ALGORITHM = ms.fedogd(
    ETA,
    sync=parts.every(PERIOD),
    participation=parts.bernoulli(RATE),
    codec=parts.error_feedback(parts.top_k(1)),
)


def loop():
    """Algorithm 2 of the paper, for the messages of OFedIQ; top-1 is the compressor."""
    with jax.enable_x64(True):
        heard = [ALGORITHM.participation.heard(random.root(0), t, K) for t in range(1, T + 1)]
    w, local = np.zeros(D), np.zeros((K, D))
    unsent, error = np.zeros((K, D)), np.zeros((K, D))
    models, server = [], [w]
    for t in range(1, T + 1):
        models.append([w] * K)
        for k in range(K):
            slope = WORLD.gradient(local[k], k, t)
            local[k] = local[k] - ETA * slope
            unsent[k] += slope
        if t % PERIOD == 0:
            total = np.zeros(D)
            for k in np.flatnonzero(heard[t - 1]):
                message = unsent[k] + error[k]
                sent = np.where(np.arange(D) == np.argmax(np.abs(message)), message, 0)
                error[k] = message - sent
                total = total + sent / RATE
            w = w - ETA / K * total
            unsent, local = np.zeros((K, D)), np.tile(w, (K, 1))
        server.append(w)
    return {"models": np.array(models), "server": np.array(server)}


@pytest.mark.parametrize("plain", [False, True])
def test_it_is_the_papers_loop(plain):
    run = ms.simulate(ALGORITHM, WORLD.problem, WORLD.stream, steps=T, dtype="float64", plain=plain)
    agrees(run, loop(), WORLD.loss)


def test_nothing_is_lost_in_the_long_run():
    """With top-1 alone, the sum of all messages falls short; with error feedback it does not."""
    problem, stream = ms.problems.softmax(64, 10), ms.streams.digits(clients=10)
    cut = ms.fedogd(0.3, codec=parts.top_k(5))
    fed = ms.fedogd(0.3, codec=parts.error_feedback(parts.top_k(5)))
    short, whole = (ms.simulate(each, problem, stream, steps=150) for each in (cut, fed))
    assert whole.loss[-30:].mean() < short.loss[-30:].mean()
    assert np.array_equal(whole.uplink_bits, short.uplink_bits)


def test_models_are_refused():
    algorithm = ms.fedomd(0.1, codec=parts.error_feedback(parts.half()))
    with pytest.raises(ms.MainstemError, match="fedomd: codec must be without error feedback"):
        ms.simulate(algorithm, WORLD.problem, WORLD.stream, steps=T)


def test_a_step_is_chosen_for_it():
    problem, stream = ms.problems.linear(4), ms.streams.sea_ridge(4, dimension=4)
    algorithm = ms.fedogd("auto", codec=parts.error_feedback(parts.top_k(2)))
    run = ms.simulate(algorithm, problem, stream, steps=60)
    assert run.algorithm.step.always > 0
