"""Measurements of a run: held-out marks, deviation in dB, a bandit's regret so far."""

import jax
import numpy as np
import pytest

import mainstem as ms
from mainstem import datasets, problems, streams
from mainstem.datasets import Table
from mainstem.parts import everything
from mainstem.run import Run, Summary

CLIENTS = 3


@pytest.fixture
def stream(monkeypatch):
    """Tasks out of five classes of noisy points in four dimensions."""
    rng = np.random.default_rng(0)
    target = rng.integers(0, 5, 300).astype(np.int32)
    features = 2 * rng.normal(size=(5, 4))[target] + rng.normal(size=(300, 4))
    table = Table(features.astype(np.float32), target, classes=5, held_out=100)
    monkeypatch.setattr(datasets, "load", lambda name: table)
    return streams.tasks("anything", clients=CLIENTS, most=5)


def test_held_out_marks_are_balanced_accuracies_of_the_final_models(stream):
    problem = problems.personal(2, 2, classes=2)
    run = ms.simulate(ms.independent(0.02), problem, stream, steps=20, seeds=2, progress=False)
    marks = ms.measure.held_out(run)["correct"]
    assert marks.shape == (2, CLIENTS)
    for n in range(2):
        paper = stream.exam(n)
        x = np.concatenate(paper.shown, axis=1)
        guessed = run.client_models[n] @ x.T > 0
        right = guessed == (paper.hidden == 1)
        np.testing.assert_allclose(marks[n], np.sum(paper.weights * right, axis=1), atol=1e-6)
    assert marks.mean() > 0.6
    assert not np.array_equal(marks[0], marks[1])


def test_deviation_is_measured_before_each_step_in_decibels():
    """A model that stays at zero is as far from the minimiser as that is from zero."""
    stream = streams.walking(3, holds=4, drift=0.1)
    problem = problems.batched(problems.logistic(2, ridge=2.0, intercept=False))
    run = ms.simulate(
        ms.fedogd(1e-30),
        problem,
        stream,
        steps=9,
        seeds=2,
        dtype="float64",
        measure=["deviation"],
        progress=False,
    )
    squares = []
    with jax.enable_x64(True):
        over_steps = jax.jit(jax.vmap(stream.minimiser, in_axes=(None, 0, 0)))
        for seed in (0, 1):
            pieces = stream.chunk(seed, 1, 9)[:, 0]
            best = np.asarray(over_steps(stream.drawn(seed), pieces, np.arange(1, 10)))
            squares.append(np.sum(best**2, axis=1))
    np.testing.assert_allclose(run.column("deviation"), squares, rtol=1e-9)
    np.testing.assert_allclose(
        ms.measure.msd(run), 10 * np.log10(np.mean(squares, axis=0)), rtol=1e-9
    )


def test_a_bandits_regret_is_averaged_over_those_who_chose():
    """Columns are means over all clients, and who is not there regrets nothing."""
    world = streams.linear_bandit(4, actions=3, shared=2, own=2)
    problem = problems.bandit(problems.personal(2, 2), actions=3, epsilon=0.3)
    trace = {"regret": np.array([[0.0, 0.3, 0.1]]), "present": np.array([[0.0, 0.5, 0.75]])}
    summary = Summary(3, [0], 4, 4, "float64", False, 0.0, 0, 0.0, 0, [])
    model = {"server": np.zeros(4)}
    run = Run({"simulate": {}}, summary, trace, model, None, problem, lambda: world, everything())
    np.testing.assert_allclose(ms.measure.bandit_regret(run), [0, 0.3 / 0.5, 0.4 / 1.25])
    with pytest.raises(
        ms.MainstemError, match=r"see measure\.bandit_regret\(run\) and measure\.policy_value"
    ):
        run.regret()
    with pytest.raises(ms.MainstemError, match="held_out: the stream holds no samples out"):
        ms.measure.held_out(run)
    with pytest.raises(ms.MainstemError, match="dr was not recorded"):
        ms.measure.policy_value(run)
    with pytest.raises(ms.MainstemError, match="deviation was not recorded"):
        ms.measure.msd(run)


def test_deviation_wants_a_stream_that_knows_its_minimiser():
    with pytest.raises(
        ms.MainstemError, match="leave out deviation: the stream knows no minimiser"
    ):
        ms.simulate(
            ms.fedogd(0.1),
            problems.quadratic(),
            streams.alternating(3),
            steps=3,
            measure=["deviation"],
        )
