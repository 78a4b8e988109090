"""Dynamic FedAvg against a plain loop written from Algorithm 1, given the batches and the agents."""

import jax
import numpy as np
import pytest

import mainstem as ms
from mainstem import parts, random
from mainstem.algorithms.dynamic_fedavg import chosen
from mainstem.base import At
from tests.reference.dynamic_fedavg import dynamic_fedavg as reference

T, K, N, RIDGE, STEP = 12, 5, 9, 0.3, 0.4
EPOCHS, SIZES = np.array([1, 2, 3, 1, 4]), np.array([2, 9, 3, 4, 1])
HOLDS = np.array([9, 9, 5, 8, 7])
HEARD = np.random.default_rng(2).uniform(size=(T, K)).argsort(axis=1) < 3


def arrived(stream, t, k):
    """What agent k holds at step t of the run with seed 0."""
    with jax.enable_x64(True):
        piece = np.asarray(stream.chunk(0, t, t))[0, k]
        at = At(np.int32(t), np.int32(k), random.fold(random.root(0), random.STREAM, t, k))
        held = jax.jit(stream.sample)(stream.known(0), piece, at)  # to the last bit
    return np.asarray(held.shown, np.float64), np.asarray(held.hidden)


@pytest.mark.parametrize("incremental", [True, False])
@pytest.mark.parametrize("normalised", [True, False])
def test_algorithm_1(incremental, normalised):
    stream = ms.streams.walking(K, holds=HOLDS, drift=0.01, ridge=RIDGE)
    problem = ms.problems.batched(ms.problems.logistic(2, ridge=RIDGE, intercept=False))
    algorithm = ms.dynamic_fedavg(
        STEP,
        epochs=EPOCHS,
        batch=np.minimum(SIZES, HOLDS),
        participation=parts.given(HEARD),
        incremental=incremental,
        normalised=normalised,
    )
    run = ms.simulate(algorithm, problem, stream, steps=T, dtype="float64")
    held = {(t, k): arrived(stream, t, k) for t in range(1, T + 1) for k in range(K)}

    def gradient(w, t, k, index):
        x, y = held[t, k][0][index], 2 * held[t, k][1][index] - 1
        return -y * x / (1 + np.exp(y * (x @ w))) + RIDGE * w

    def batches(t, k, e):
        key = random.fold(random.root(0), random.LEARN, t, k, e)
        order = np.asarray(chosen(key, N, HOLDS[k]))
        index = order[: min(SIZES[k], HOLDS[k])]
        assert len(set(index)) == len(index)
        assert index.max() < HOLDS[k]
        return index

    expected = reference(
        gradient,
        np.zeros(2),
        T=T,
        participants=[list(np.flatnonzero(row)) for row in HEARD],
        epochs=EPOCHS,
        batches=batches,
        step=STEP,
        incremental=incremental,
        normalised=normalised,
    )
    assert np.allclose(run.model, expected["server"][-1], rtol=0, atol=1e-10)


def test_minibatches_are_uniform():
    keys = jax.vmap(lambda n: random.fold(random.root(0), n))(np.arange(20000))
    first = np.asarray(jax.vmap(lambda key: chosen(key, 6, 4)[0])(keys))
    shares = np.bincount(first, minlength=6) / len(first)
    assert shares[4:].sum() == 0
    assert np.allclose(shares[:4], 0.25, atol=4 * np.sqrt(0.25 * 0.75 / len(first)))


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
