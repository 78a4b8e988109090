"""A trace of blocks of steps has the means of the trace of all steps, and the same sums at the ends of blocks."""

import numpy as np
import pytest

import mainstem as ms
from mainstem import parts
from mainstem.engines.simulate import engine
from mainstem.engines.simulate.thinning import Thinning
from mainstem.errors import BadParameter, Diverged

STEPS, EVERY = 120, 15
DIGITS, SOFTMAX = ms.streams.digits(clients=6), ms.problems.softmax(64, 10)
CASES = {
    "shared models": (ms.fedogd(0.3, sync=parts.every(4)), ["loss per client every 30"]),
    "models of their own": (ms.fedomd(0.1, sync=parts.every(7)), ["collective"]),
    "cohorts": (ms.ofedavg(0.3, rate=0.5), ["average"]),
}


def simulated(name, **arguments):
    algorithm, measure = CASES[name]
    settings = {"steps": STEPS, "dtype": "float64", "measure": measure, "progress": False}
    return ms.simulate(algorithm, SOFTMAX, DIGITS, **settings | arguments)


@pytest.mark.parametrize("chunk", [None, 7])
@pytest.mark.parametrize("seeds", [None, 2])
@pytest.mark.parametrize("name", CASES)
def test_a_block_is_the_mean_of_its_steps(name, seeds, chunk, tmp_path):
    whole = simulated(name, seeds=seeds)
    there = simulated(name, seeds=seeds, every=EVERY, chunk=chunk, folder=tmp_path / "run")
    for run in (there, ms.load(tmp_path / "run"), simulated(name, seeds=seeds, every=EVERY)):
        blocks = np.reshape(whole.loss, (*np.shape(whole.loss)[:-1], -1, EVERY))
        np.testing.assert_allclose(run.loss, blocks.mean(axis=-1), rtol=1e-12)
        ends = run.t - 1
        assert ends.tolist() == list(range(EVERY - 1, STEPS, EVERY))
        for curve in ("accuracy", "uplink_bits", "downlink_bytes"):
            expected = whole.curve(curve)[..., ends]
            np.testing.assert_allclose(run.curve(curve), expected, rtol=1e-12)
        here, expected = run.regret([30, STEPS]), whole.regret([30, STEPS])
        np.testing.assert_allclose(here.values, expected.values, rtol=1e-10)
        np.testing.assert_allclose(run.models["server"], whole.models["server"], rtol=1e-12)
        for column in {"average"} & set(whole.models):
            np.testing.assert_allclose(run.models[column], whole.models[column], rtol=1e-12)
        for column in {"loss_per_client_every_30"} & set(whole.columns):
            np.testing.assert_array_equal(run.column(column), whole.column(column))
        assert run.to_pandas()["t"].unique().tolist() == run.t.tolist()


def test_the_error_of_a_sampled_collective_loss_is_that_of_all_steps():
    problem = ms.problems.mlp(64, classes=10, hidden=(4,))
    algorithm = ms.fedomd(0.1, sync=parts.every(5))
    settings = {"steps": STEPS, "measure": ["collective"], "dtype": "float64"}
    whole = ms.simulate(algorithm, problem, DIGITS, **settings)
    run = ms.simulate(algorithm, problem, DIGITS, every=EVERY, **settings)
    expected = np.sqrt(np.sum(whole.column("collective_error") ** 2))
    found = EVERY * np.sqrt(np.sum(run.column("collective_error") ** 2))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_bound_of_a_theorem_is_the_same():
    box = parts.euclidean(parts.box(-3, 3))
    algorithm = ms.fedomd(parts.inverse_time(2.0), mirror=box, sync=parts.every(20))
    problem, stream = ms.problems.quadratic(low=-3, high=3), ms.streams.alternating(4)
    whole = ms.simulate(algorithm, problem, stream, steps=600)
    run = ms.simulate(algorithm, problem, stream, steps=600, every=30)
    np.testing.assert_allclose(run.bound().value, whole.bound().value)
    run.plot(bound=True)  # at multiples of 20 and 30


def test_an_interrupted_run_goes_on_in_the_middle_of_a_block(tmp_path, monkeypatch):
    """A chunk has 20 steps, a block 15 or 40."""
    for every in (15, 40):
        place = tmp_path / f"{every}"
        arguments = {"every": every, "chunk": 20, "checkpoint": 0.0}
        with monkeypatch.context() as patch:
            saved = []

            class Interrupted(engine.Recorder):
                def save(self, state, last, saved=saved):
                    super().save(state, last)
                    saved.append(self.step)
                    if self.step == 100:
                        raise KeyboardInterrupt

            patch.setattr(engine, "Recorder", Interrupted)
            with pytest.raises(KeyboardInterrupt):
                simulated("cohorts", folder=place, **arguments)
            assert 20 in saved
        resumed = simulated("cohorts", folder=place, **arguments)
        unharmed = simulated("cohorts", **arguments)
        np.testing.assert_array_equal(resumed.loss, unharmed.loss)
        np.testing.assert_array_equal(resumed.uplink_bits, unharmed.uplink_bits)


def test_a_sweep_has_blocks_too():
    def make(step):
        return ms.fedogd(step), SOFTMAX

    grid = {"step": [0.1, 0.6, 30.0]}
    whole = ms.sweep(make, grid, DIGITS, steps=60, seeds=2)
    found = ms.sweep(make, grid, DIGITS, steps=60, seeds=2, every=20)
    assert found.runs[0].loss.shape == (2, 3)
    for row, expected in zip(found.rows, whole.rows, strict=True):
        assert row == pytest.approx(expected, rel=1e-5)


def test_the_curves_of_a_run_that_diverged_end_with_the_block_before():
    problem = ms.problems.linear(1)
    stream = ms.streams.arrays(np.full((40, 1), 1e3), np.ones(40), clients=2)
    with pytest.warns(Diverged):
        whole = ms.simulate(ms.fedogd(1e3), problem, stream, steps=40)
    with pytest.warns(Diverged):
        run = ms.simulate(ms.fedogd(1e3), problem, stream, steps=40, every=4)
    assert run.diverged == whole.diverged
    _, step, *_ = run.summary.diverged[0]
    assert np.isfinite(run.mse).sum() == (step - 1) // 4


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"every": 50}, "every must be a divisor of 120, the steps, got 50"),
        ({"every": 0}, "every must be"),
        ({"every": 8, "measure": ["loss per client every 30"]}, "8-th step"),
        ({"every": 8, "measure": ["loss per client"]}, "8-th step"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(arguments, complaint):
    with pytest.raises(BadParameter, match=complaint):
        simulated("shared models", **arguments)


def test_scores_are_not_thinned():
    stream = ms.streams.arrays(np.ones((40, 2)), np.arange(40) % 2, clients=2)
    with pytest.raises(BadParameter, match="scores"):
        ms.simulate(
            *(ms.fedogd(0.1), ms.problems.logistic(2), stream),
            steps=20,
            every=10,
            measure=["scores"],
        )


def test_regret_within_a_block_is_refused():
    run = simulated("shared models", every=EVERY)
    with pytest.raises(BadParameter, match="multiples of 15"):
        run.regret([20])
    assert run.regret("all").steps.tolist() == run.t.tolist()


def test_counts_too_large_for_a_device_are_summed_on_the_host():
    import jax.numpy as jnp

    clients, every = 2**24, 200
    rows = {"loss": jnp.ones(400), "uploads": jnp.full(400, clients, jnp.int32)}
    found = Thinning(every, clients)(rows, 1)
    assert np.asarray(found["uploads"]).tolist() == [every * clients] * 2
