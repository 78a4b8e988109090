"""Runs: saved, loaded, broken, compared, drawn."""

import json
import pickle

import numpy as np
import pytest

import mainstem as ms
from mainstem.run.rebuilding import why_not
from tests.algorithms.table import regression, tabled

PROBLEM, STREAM = ms.problems.softmax(64, 10), ms.streams.digits(clients=10)


@pytest.fixture(scope="module")
def run():
    return ms.simulate(ms.fedogd(0.3), PROBLEM, STREAM, steps=12, seeds=2)


@pytest.fixture
def saved(run, tmp_path):
    return run.save(tmp_path / "run")


@pytest.mark.parametrize("kind", ["in memory", "loaded"])
def test_a_run_survives_a_pickle(kind, run, saved):
    whole = run if kind == "in memory" else ms.load(saved)
    found = pickle.loads(pickle.dumps(whole))
    assert np.array_equal(found.loss, run.loss)
    assert found.stream == run.stream
    assert found.algorithm == run.algorithm


def test_a_saved_run_comes_back_whole(run, saved):
    found = ms.load(saved)
    assert found.columns == run.columns
    for name in run.columns:
        assert np.array_equal(found.trace[name], run.trace[name])
    assert np.array_equal(found.model, run.model)
    assert np.array_equal(found.uplink_bits, run.uplink_bits)
    assert found.spec == run.spec
    assert np.allclose(found.regret().values, run.regret().values)
    assert sorted(path.name for path in saved.iterdir()) == [
        "comparators",
        "environment.json",
        "model.npz",
        "run.json",
        "spec.toml",
        "trace.parquet",
    ]
    assert json.loads((saved / "environment.json").read_text())["packages"]["jax"]


def test_running_metrics_are_of_predictions_made_before_the_truth_is_seen():
    table, steps = regression(9, 4, 3), np.arange(1, 10)
    labels = (table.y > 0).astype(np.int32)
    line, border, squares, right = np.zeros(3), np.zeros(3), [], []
    for t, (x, y, label) in enumerate(zip(table.x, table.y, labels, strict=True), start=1):
        squares.append(np.mean((x @ line - y) ** 2))
        right.append(np.mean((x @ border > 0) == label))
        line = line - 0.1 * np.mean([table.gradient(line, k, t) for k in range(4)], axis=0)
        border = border - 0.3 * np.mean(
            (1 / (1 + np.exp(-x @ border)) - label)[:, None] * x, axis=0
        )
    run = ms.simulate(ms.fedogd(0.1), table.problem, table.stream, steps=9, dtype="float64")
    assert np.allclose(run.mse, np.cumsum(squares) / steps, rtol=0, atol=1e-10)
    run = ms.simulate(
        ms.fedogd(0.3),
        ms.problems.logistic(3, intercept=False),
        tabled((table.x, labels)),
        steps=9,
        dtype="float64",
    )
    assert np.allclose(run.accuracy, np.cumsum(right) / steps, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ["spec.toml", "trace.parquet", "model.npz"])
def test_a_flipped_byte_is_noticed(saved, name):
    path = saved / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)
    with pytest.raises(ms.MainstemError, match=f"{name} is not what was written"):
        ms.load(saved)


@pytest.mark.parametrize("name", ["spec.toml", "trace.parquet", "model.npz"])
def test_a_missing_file_is_named(saved, name):
    (saved / name).unlink()
    with pytest.raises(ms.MainstemError, match=f"{name} is missing"):
        ms.load(saved)


def test_half_a_summary_is_refused(saved):
    path = saved / "run.json"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(ms.MainstemError, match=r"run\.json cannot be read"):
        ms.load(saved)
    path.write_text("[]")
    with pytest.raises(
        ms.MainstemError, match="is of format None, this version of mainstem reads format 3"
    ):
        ms.load(saved)


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(ms.MainstemError, match="there is no such run folder"):
        ms.load(tmp_path / "nowhere")
    with pytest.raises(ms.MainstemError, match="is not a run folder"):
        ms.load(tmp_path)


def test_a_run_on_data_from_memory_wants_it_again(tmp_path):
    stream = ms.streams.arrays(np.ones((9000, 2)), np.arange(9000.0), clients=3)
    run = ms.simulate(ms.fedogd(0.01), ms.problems.linear(2), stream, steps=4, dtype="float64")
    found = ms.load(run.save(tmp_path / "run"))
    with pytest.raises(ms.MainstemError, match=r"regret\(stream=\.\.\.\)"):
        found.regret()
    assert float(found.regret(stream=stream)) == float(run.regret())


def test_a_column_that_was_not_recorded_is_named(run):
    with pytest.raises(
        ms.MainstemError,
        match=r"squared_error was not recorded; there are accuracy, .* regret, correct, ",
    ):
        _ = run.mse
    with pytest.raises(ms.MainstemError, match='measure=\\["average"\\]'):
        ms.measure.average_model(run)


def test_to_pandas_has_a_row_for_each_step_and_seed(run):
    frame = run.to_pandas()
    assert len(frame) == 24
    for name in ("loss", "accuracy", "uplink_bits", "downlink_bytes"):
        assert np.array_equal(frame[frame.seed == 1][name], run.curve(name)[1])


def test_what_is_missing_is_named(tmp_path):
    """A problem and a stream from code and data of one's own cannot be rebuilt from the folder."""
    problem = ms.problems.custom(
        lambda key: np.zeros(2), lambda w, x: x @ w, lambda s, y: (s - y) ** 2
    )
    stream = ms.streams.arrays(np.ones((5000, 2)), np.ones(5000), clients=2)
    place = ms.simulate(ms.fedogd(0.1), problem, stream, steps=4).save(tmp_path / "run")
    with pytest.raises(
        ms.MainstemError, match=r"problem is not known here: ms.load\(folder, problem"
    ):
        ms.load(place, stream=stream).regret()
    with pytest.raises(ms.MainstemError, match=r"data was in memory: give regret\(stream="):
        ms.load(place, problem=problem).regret()
    found = ms.load(place, problem=problem, stream=stream)
    found.domain = None
    with pytest.raises(
        ms.MainstemError, match=r"algorithm is not known here: ms.load\(folder, algo"
    ):
        found.regret()
    own = ms.load(place, algorithm=ms.fedogd(0.1), problem=problem)
    assert float(own.regret(stream=stream)) >= 0


def test_an_error_without_text_says_why_data_cannot_be_read(monkeypatch):
    def fails(*_):
        raise MemoryError

    monkeypatch.setattr("mainstem.experiment.made", fails)
    assert why_not({"name": "digits"}).endswith("cannot be read: MemoryError")


def test_a_column_by_its_name_with_spaces_and_what_is_no_column():
    run = ms.simulate(ms.fedogd(0.1), PROBLEM, STREAM, steps=4, measure=["loss per client every 2"])
    np.testing.assert_array_equal(
        run.column("loss per client every 2"), run.column("loss_per_client_every_2")
    )
    for name, words in (
        ("accuracy", r"run: accuracy is computed from columns: run.curve\('accuracy'\)"),
        ("regret", r"run: regret is computed from columns: run.regret\(\)"),
        ("los", r"los was not recorded; there are .* \(did you mean loss\?\)"),
    ):
        with pytest.raises(ms.MainstemError, match=words):
            run.column(name)


def test_data_that_changed_or_is_gone_is_named(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,y\n1,2\n2,4\n3,5\n")
    made = ms.simulate(ms.fedogd(0.1), ms.problems.linear(1), ms.streams.csv(path, "y"), steps=3)
    made.save(tmp_path / "run")
    path.write_text("a,y\n1,2\n2,4\n3,6\n")
    with pytest.raises(ms.MainstemError, match=r"data\.csv.*changed"):
        ms.load(tmp_path / "run").regret()
    path.unlink()
    with pytest.raises(ms.MainstemError, match=r"data\.csv"):
        ms.load(tmp_path / "run").regret()


def test_a_domain_that_models_may_leave_is_marked():
    draw = np.random.default_rng(0)
    stream = ms.streams.arrays(draw.normal(size=(20, 2)), draw.normal(size=20), clients=2)
    problem = ms.problems.custom(
        lambda key: np.zeros(2, np.float32),
        lambda w, x: x @ w,
        lambda s, y: (s - y) ** 2,
        convex=True,
        domain=ms.parts.l2_ball(0.1),
    )
    free = ms.simulate(ms.fedogd(0.1), problem, stream, steps=10)
    assert "in the l2 ball of radius 0.1, which models may leave" in str(free.regret())
    mirror = ms.parts.euclidean(ms.parts.l2_ball(0.1))
    inside = ms.simulate(ms.fedomd(0.1, mirror=mirror), problem, stream, steps=10)
    assert "may leave" not in str(inside.regret())
