"""Dynamic FedAvg against a plain loop written from Algorithm 1, given the batches and the agents."""

import functools

import jax
import numpy as np
import pytest

import mainstem as ms
from mainstem import extend as mx
from mainstem import parts, random, replay
from mainstem.algorithms import SendEpochs
from mainstem.parts.minibatch import chosen
from mainstem.value.frozen import PRESETS
from tests.reference.dynamic_fedavg import dynamic_fedavg as reference

T, K, N, RIDGE, STEP = 12, 5, 9, 0.3, 0.4
EPOCHS, SIZES = np.array([1, 2, 3, 1, 4]), np.array([2, 9, 3, 4, 1])
HOLDS = np.array([9, 9, 5, 8, 7])
SAMPLED = np.random.default_rng(2).uniform(size=(T, K)).argsort(axis=1) < 3
STREAM = ms.streams.walking(K, holds=HOLDS, drift=0.01, ridge=RIDGE)


@functools.cache
def arrived():
    """What each agent holds at each step of the run with seed 0, by (t, k)."""
    steps, agents = np.arange(1, T + 1, dtype=np.int32), np.arange(K, dtype=np.int32)

    def at_step(sampler, drawn, pieces, t):
        return replay.arrived(sampler, random.root(0), drawn, pieces, t, agents)

    with jax.enable_x64(True):
        over_steps = jax.jit(jax.vmap(at_step, in_axes=(None, None, 0, 0)))  # to the last bit
        held = jax.device_get(over_steps(*replay.given(STREAM, 0, 1, T, "float64"), steps))
    return {
        (t, k): (np.asarray(held.shown[t - 1, k], np.float64), held.hidden[t - 1, k])
        for t in steps
        for k in agents
    }


@functools.cache
def batches(t, k, e):
    """The samples of agent k's epoch e at step t."""
    key = random.fold(random.root(0), random.LEARN, t, k, e)
    size = min(SIZES[k], HOLDS[k])
    index = np.flatnonzero(chosen(key, np.arange(N) < HOLDS[k], size))
    assert len(index) == size
    assert index.max() < HOLDS[k]
    return index


@pytest.mark.parametrize(
    ("incremental", "normalised"),
    [
        (True, True),
        pytest.param(False, False, marks=pytest.mark.slow),
        pytest.param(True, False, marks=pytest.mark.slow),
        pytest.param(False, True, marks=pytest.mark.slow),
    ],
)
def test_algorithm_1(incremental, normalised):
    problem = ms.problems.batched(ms.problems.logistic(2, ridge=RIDGE, intercept=False))
    algorithm = ms.dynamic_fedavg(
        STEP,
        epochs=EPOCHS,
        batch=np.minimum(SIZES, HOLDS),
        participation=parts.given(SAMPLED),
        incremental=incremental,
        normalised=normalised,
    )
    run = ms.simulate(algorithm, problem, STREAM, steps=T, dtype="float64")
    held = arrived()

    def gradient(w, t, k, index):
        x, y = held[t, k][0][index], 2 * held[t, k][1][index] - 1
        return -y * x / (1 + np.exp(y * (x @ w))) + RIDGE * w

    expected = reference(
        gradient,
        np.zeros(2),
        T=T,
        participants=[list(np.flatnonzero(row)) for row in SAMPLED],
        epochs=EPOCHS,
        batches=batches,
        step=STEP,
        incremental=incremental,
        normalised=normalised,
    )
    assert np.allclose(run.model, expected["server"][-1], rtol=0, atol=1e-10)


def test_minibatches_are_uniform():
    keys = jax.vmap(lambda n: random.fold(random.root(0), n))(np.arange(20000))
    real = np.array([True, False, True, True, True, False])
    sets = np.asarray(jax.vmap(lambda key: chosen(key, real, 2))(keys))
    assert np.all(sets.sum(axis=1) == 2)
    assert not sets[:, ~real].any()
    pairs, counts = np.unique(sets, axis=0, return_counts=True)
    assert len(pairs) == 6  # all pairs of four, each as likely as another
    assert np.allclose(counts / len(sets), 1 / 6, atol=4 * np.sqrt(5 / 36 / len(sets)))


def test_refusals():
    stream = ms.streams.walking(3, holds=[5, 9, 9])
    problem = ms.problems.batched(ms.problems.logistic(2, ridge=2.0, intercept=False))
    with pytest.raises(ms.MainstemError, match="at most the 5 samples that client 0 holds, got 6"):
        ms.simulate(ms.dynamic_fedavg(0.1, batch=6), problem, stream, steps=5)
    with pytest.raises(ms.MainstemError, match="epochs must have one entry for each of 3 clients"):
        ms.simulate(ms.dynamic_fedavg(0.1, epochs=[1, 2]), problem, stream, steps=5)
    for name, bad in (("epochs", 0), ("epochs", 1.5), ("batch", [3, 0]), ("batch", "many")):
        with pytest.raises(ms.MainstemError, match=f"dynamic_fedavg: {name} must be whole numbers"):
            ms.dynamic_fedavg(0.1, **{name: bad})
    with pytest.raises(ms.MainstemError, match="step must depend on t alone"):
        ms.dynamic_fedavg(parts.adagrad(0.1))


def test_a_misfit_is_refused_by_the_name_of_the_preset(monkeypatch):
    monkeypatch.setitem(PRESETS, SendEpochs, [*PRESETS[SendEpochs]])

    @mx.preset(SendEpochs)
    def weekly(step, epochs=1, batch=None):
        return SendEpochs(step, epochs, batch, sync=parts.every(7))

    stream = ms.streams.walking(3, holds=[5, 9, 9])
    problem = ms.problems.batched(ms.problems.logistic(2, ridge=2.0, intercept=False))
    for name, bad in (("epochs", [1, 2]), ("batch", [1, 2]), ("batch", 6)):
        with pytest.raises(ms.MainstemError, match=f"^weekly: {name} must"):
            ms.simulate(weekly(0.1, **{name: bad}), problem, stream, steps=5)
