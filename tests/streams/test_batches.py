"""Mini-batches of a stream are its steps, several at a time."""

import jax
import numpy as np
import pytest

import mainstem as ms
from tests.streams.replayed import replayed

FEATURES = np.arange(22.0).reshape(11, 2) / 10
TARGET = np.arange(11.0)
KEYS = np.repeat([0, 1], [7, 4])  # the second client ends earlier


def stream(**given):
    return ms.streams.arrays(FEATURES, TARGET, keys=KEYS, **given)


def test_a_batch_has_the_replayed_its_steps():
    batches = replayed(ms.streams.in_batches(stream(), 3), steps=2)
    assert batches.shown.shape == (2, 2, 3, 2)
    assert np.array_equal(batches.hidden[:, 0], [[0, 1, 2], [3, 4, 5]])
    assert np.array_equal(batches.hidden[0, 1], [7, 8, 9])
    assert batches.hidden[1, 1, 0] == 10
    assert np.array_equal(batches.count, [[3, 3], [3, 1]])


def test_learning_from_batches_is_learning_from_mean_gradients():
    problem = ms.problems.linear(2, ridge=0.1)
    run = ms.simulate(
        ms.fedogd(0.05),
        ms.problems.batched(problem),
        ms.streams.in_batches(stream(), 3),
        steps=2,
        dtype="float64",
    )
    w = np.zeros(3)
    rows = np.column_stack([FEATURES, np.ones(11)])
    for batch in ([[0, 1, 2], [7, 8, 9]], [[3, 4, 5], [10]]):
        slopes = [
            np.mean([(rows[i] @ w - TARGET[i]) * rows[i] + 0.1 * w for i in mine], axis=0)
            for mine in batch
        ]
        w = w - 0.05 * np.mean(slopes, axis=0)
    assert np.allclose(run.model, w, atol=1e-12)


def test_every_generated_sample_is_another():
    batches = replayed(ms.streams.in_batches(ms.streams.residuals(2, 3, 1), 4), steps=3)
    labels = np.ravel(batches.hidden)
    assert len(np.unique(labels)) == labels.size == 24


def test_present_samples_come_first():
    some = ms.streams.sometimes(ms.streams.digits(clients=3), 0.5)
    problem = ms.problems.batched(ms.problems.softmax(64, 10))
    run = ms.simulate(ms.fedogd(0.5), problem, ms.streams.in_batches(some, 6), steps=80)
    assert run.accuracy[-10:].mean() > 0.7


def test_what_has_no_batches_is_refused():
    with pytest.raises(ms.MainstemError, match="in_batches: size must be at most 7"):
        ms.streams.in_batches(stream(), 8)
    with pytest.raises(ms.MainstemError, match="in_batches: stream must have one sample in a step"):
        ms.streams.in_batches(ms.streams.in_batches(stream(), 2), 2)


def test_regret_is_certified():
    problem = ms.problems.batched(ms.problems.linear(2, ridge=0.1))
    run = ms.simulate(ms.fedogd(0.05), problem, ms.streams.in_batches(stream(), 2), steps=3)
    assert float(run.regret()) > 0
    assert jax.numpy.isfinite(run.regret().gaps).all()


def test_batches_and_their_problem_go_together():
    problem = ms.problems.linear(2)
    with pytest.raises(
        ms.MainstemError, match=r"the stream has \(2, 2\): for batches take problems"
    ):
        ms.simulate(ms.fedogd(0.1), problem, ms.streams.in_batches(stream(), 2), steps=2)
    with pytest.raises(
        ms.MainstemError, match=r"batched: wants several samples in a step, such as"
    ):
        ms.simulate(ms.fedogd(0.1), ms.problems.batched(problem), stream(), steps=2)
