"""Delays on both links: the simulator's ring buffers equal a loop with plain lists of messages."""

import numpy as np
import pytest

import mainstem as ms
from mainstem import parts
from tests.algorithms.table import agrees, losses, regression
from tests.reference import steps
from tests.reference.network import fedomd_delayed, ofediq_delayed
from tests.thinned import thinned

T, K, D = 31, 4, 2
QUADRATIC, REGRESSION = losses(T, K, D), regression(T, K, D)
SYNCS = {
    "every step": parts.every(1),
    "every 5": parts.every(5),
    "irregular": parts.after_steps([1, 2, 3, 9, 10, 17, 18, 30]),
}
DELAYS = {
    "none": (0, 0),
    "one": (1, 1),
    "five": (5, 5),
    "up": (5, 0),
    "down": (0, 5),
    "unequal": ([0, 1, 5, 2], [5, 0, 1, 3]),
}
GATE = [
    ("every step", "none"),
    ("every step", "unequal"),
    ("every 5", "one"),
    ("every 5", "up"),
    ("irregular", "down"),
    ("irregular", "unequal"),
]
COMBINED = pytest.mark.parametrize(("sync", "delays"), thinned(SYNCS, DELAYS, gate=GATE))
SAMPLED = np.random.default_rng(8).uniform(size=(T, K)) < 0.7


def _arguments(sync, delays):
    up, down = (np.broadcast_to(each, K) for each in delays)
    synced = set(np.flatnonzero(sync.after(np.arange(1, T + 1))) + 1)
    return synced, lambda t: [k for k in range(K) if SAMPLED[t - 1, k]], up, down


@COMBINED
def test_fedomd_on_slow_links(sync, delays):
    sync, delays = SYNCS[sync], DELAYS[delays]
    algorithm = ms.fedomd(0.3, sync=sync, participation=parts.given(SAMPLED))
    synced, participants, up, down = _arguments(sync, delays)
    run = ms.simulate(
        algorithm,
        QUADRATIC.problem(),
        QUADRATIC.stream,
        steps=T,
        dtype="float64",
        network=ms.network(*delays),
        measure=(),
    )
    expected = fedomd_delayed(
        QUADRATIC.gradient,
        np.zeros(D),
        T,
        K,
        steps.euclidean,
        lambda t: 0.3,
        synced,
        participants,
        up,
        down,
    )
    agrees(run, expected, QUADRATIC.loss)


@COMBINED
def test_ofediq_on_slow_links(sync, delays):
    sync, delays = SYNCS[sync], DELAYS[delays]
    rates = SAMPLED.mean(axis=0)  # with weights by how often clients were sampled, as in the paper
    algorithm = ms.fedogd(0.05, sync=sync, participation=parts.given(SAMPLED))
    synced, participants, up, down = _arguments(sync, delays)
    run = ms.simulate(
        algorithm,
        REGRESSION.problem,
        REGRESSION.stream,
        steps=T,
        dtype="float64",
        network=ms.network(*delays),
        plain=True,
    )
    expected = ofediq_delayed(
        REGRESSION.gradient, np.zeros(D), T, K, 0.05, rates, synced, participants, up, down
    )
    agrees(run, expected, REGRESSION.loss)


@pytest.mark.parametrize("delays", DELAYS.values(), ids=DELAYS.keys())
def test_every_gradient_is_applied_exactly_once(delays):
    """With linear losses the server ends at minus step / K times the sum of all gradients."""
    world = losses(T, K, D, linear=True)
    algorithm = ms.fedogd(0.1)
    quiet = 12  # steps without losses at the end, so that everything can arrive
    world.a[-quiet:] = 0
    run = ms.simulate(
        algorithm,
        world.problem(),
        world.stream,
        steps=T,
        dtype="float64",
        network=ms.network(*delays),
    )
    expected = np.full(D, 1 / D) - 0.1 / K * world.a.sum(axis=(0, 1))
    assert np.allclose(np.ravel(run.model), expected, rtol=0, atol=1e-12)


def test_a_delay_longer_than_the_run_is_refused():
    with pytest.raises(ms.MainstemError, match="network: up must be shorter than the run"):
        ms.simulate(
            ms.fedogd(0.1),
            REGRESSION.problem,
            REGRESSION.stream,
            steps=5,
            network=ms.network(up=5),
        )
