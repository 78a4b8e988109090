"""Workers: seeds distributed over the cores give the same runs as one at a time, and can be resumed."""

import numpy as np
import pytest

import mainstem as ms
from mainstem import problems, streams
from mainstem.engines.simulate import engine, rollouts, workers
from mainstem.engines.simulate.devices import Layout

T, SEEDS = 40, [3, 4, 5, 6]
ALGORITHM = ms.fedres_sgd(0.05)
STREAM, PROBLEM = streams.residuals(4, shared=2, own=2), problems.personal(2, 2)


def cores(monkeypatch, count):
    monkeypatch.setattr(workers.os, "sched_getaffinity", lambda _: set(range(count)))


def simulated(**settings):
    chosen = {"steps": T, "seeds": SEEDS, "dtype": "float64", "progress": False, "chunk": 10}
    return ms.simulate(ALGORITHM, PROBLEM, STREAM, **(chosen | settings))


def agree(one, other):
    for name in one.columns:
        np.testing.assert_allclose(one.trace[name], other.trace[name], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(one.client_models, other.client_models, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("seeds", "count", "sizes"),
    [(1, 8, [1]), (4, 1, [4]), (4, 2, [2, 2]), (4, 3, [2, 2]), (6, 4, [2, 2, 2]), (5, 4, [5])],
)
def test_seeds_go_in_equal_groups(monkeypatch, seeds, count, sizes):
    cores(monkeypatch, count)
    groups = workers.shared_out([*range(seeds)], Layout(None))
    assert [len(group) for group in groups] == sizes
    assert [seed for group in groups for seed in group] == [*range(seeds)]
    assert workers.shared_out([*range(seeds)], Layout("a mesh")) == [[*range(seeds)]]


def test_states_are_joined_and_parted():
    states = [{"a": np.arange(2) + 10 * n, "b": np.full((2, 3), n)} for n in range(3)]
    whole = workers.whole(states)
    for before, after in zip(states, workers.parted(whole, 3), strict=True):
        for name in before:
            np.testing.assert_array_equal(before[name], after[name])
    assert workers.whole(states[:1]) is states[0]
    assert workers.parted(whole, 1)[0] is whole


def test_threads_give_the_runs_one_by_one(monkeypatch):
    """Each seed with what it draws for itself."""
    cores(monkeypatch, 2)
    many = simulated()
    for n in (0, 3):
        one = simulated(seeds=None, seed=SEEDS[n])
        for name in one.columns:
            np.testing.assert_allclose(many.trace[name][n], one.trace[name][0], atol=1e-12)
        np.testing.assert_allclose(many.client_models[n], one.client_models, atol=1e-12)


def test_a_run_over_threads_is_resumed_on_any_number_of_cores(monkeypatch, tmp_path):
    cores(monkeypatch, 2)
    whole = simulated()
    save, calls = engine.Recorder.save, []

    def interrupted(self, *given):
        save(self, *given)
        calls.append(self.step)
        if len(calls) == 2:
            raise KeyboardInterrupt

    settings = {"folder": tmp_path / "run", "checkpoint": 0.0}
    with monkeypatch.context() as patch:
        patch.setattr(engine.Recorder, "save", interrupted)
        with pytest.raises(KeyboardInterrupt):
            simulated(**settings)
    assert calls == [10, 20]
    cores(monkeypatch, 1)
    agree(simulated(**settings), whole)


def test_a_worker_that_fails_raises_its_error(monkeypatch):
    cores(monkeypatch, 2)

    def broken(self, *given):
        raise FloatingPointError("out of order")

    with monkeypatch.context() as patch:
        patch.setattr(rollouts.Group, "advance", broken)
        with pytest.raises(FloatingPointError, match="out of order"):
            simulated()
