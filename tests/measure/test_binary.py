"""AUC, F1 and log loss equal those of scikit-learn; columns with a number for each client."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn import metrics

import mainstem as ms
from mainstem.errors import BadParameter, BrokenRun, MainstemError
from mainstem.measure.binary import _auc

T = 60
MEASURE = ["scores", "loss per client", "correct per client"]


def stream():
    """Sites of unequal length, few positives."""
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(180, 3)).round(1)  # with ties
    target = np.where(rows @ [1.0, -1.0, 0.5] > 1.8, "bad", "fine")
    return ms.streams.arrays(
        rows, target, keys=draw.choice(["a", "b", "c"], 180, p=[0.6, 0.3, 0.1])
    )


@pytest.fixture(scope="module")
def run():
    return ms.simulate(
        ms.fedsea(0.1, period=3),
        ms.problems.logistic(3),
        stream(),
        steps=T,
        seeds=2,
        measure=MEASURE,
    )


@pytest.mark.parametrize("step", [20, 41, T])
@pytest.mark.parametrize("seed", [0, 1])
def test_equal_those_of_scikit_learn(run, seed, step):
    scores, labels = (
        run.column(name)[seed, :step] for name in ("score_per_client", "label_per_client")
    )
    here = ~np.isnan(labels)
    assert 0 < here.sum() < here.size or step == 20
    scores, labels = scores[here].astype(float), labels[here]
    assert len(np.unique(scores)) < len(scores)
    found = [of(run)[seed, step - 1] for of in (ms.measure.auc, ms.measure.f1, ms.measure.log_loss)]
    wanted = [
        metrics.roc_auc_score(labels, scores),
        metrics.f1_score(labels, scores > 0),
        metrics.log_loss(labels, 1 / (1 + np.exp(-scores))),
    ]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_auc_has_no_value_without_a_pair():
    found = _auc(
        np.array([[0.3, 0.2], [0.1, 0.4], [0.2, np.nan]]), np.array([[1, 1], [1, 1], [0, np.nan]])
    )
    np.testing.assert_array_equal(found, [np.nan, np.nan, (1 + 0.5 + 0 + 1) / 4])


def test_each_path_and_precision_records_the_same(run):
    given = ms.fedsea(0.1, period=3), ms.problems.logistic(3), stream()
    for change in (
        {"plain": True},
        {"dtype": "float64"},
        {"chunk": 7},
        {"network": ms.network(up=0)},
    ):
        other = ms.simulate(*given, steps=T, seeds=2, measure=MEASURE, **change)
        for name in (
            "score_per_client",
            "label_per_client",
            "loss_per_client",
            "correct_per_client",
        ):
            np.testing.assert_allclose(other.column(name), run.column(name), atol=1e-5)


def test_scores_of_a_shared_model_and_of_two_outputs():
    draw = np.random.default_rng(1)
    rows, label = draw.normal(size=(40, 3)), draw.integers(0, 2, 40)
    data = ms.streams.arrays(rows, label, clients=4)
    given = {"steps": 10, "measure": ["scores"], "dtype": "float64"}
    one = ms.simulate(ms.fedogd(0.2), ms.problems.logistic(3), data, **given)
    two = ms.simulate(ms.fedogd(0.1), ms.problems.softmax(3, 2), data, **given)
    np.testing.assert_allclose(
        one.column("score_per_client"), two.column("score_per_client"), atol=1e-12
    )


def test_a_number_for_each_client_averages_to_the_column(run):
    for name in ("loss", "correct"):
        each = run.column(f"{name}_per_client")
        np.testing.assert_allclose(np.nansum(each, axis=2) / 3, run.column(name), rtol=1e-5)
    absent = np.isnan(run.column("loss_per_client")).sum(axis=2)
    np.testing.assert_allclose(absent, 3 - 3 * run.column("present"), atol=1e-6)


def test_they_come_back_from_a_folder(run, tmp_path):
    again = ms.load(run.save(tmp_path / "run"))
    for name in run.columns:
        np.testing.assert_array_equal(again.column(name), run.column(name))
    np.testing.assert_array_equal(ms.measure.auc(again), ms.measure.auc(run))
    assert again.column("loss_per_client").dtype == np.float32


@pytest.mark.parametrize("settings", [{}, {"chunk": 7}, {"plain": True, "chunk": 9}])
def test_a_column_of_every_nth_step(run, settings, tmp_path):
    name = "loss_per_client_every_10"
    given = ms.fedsea(0.1, period=3), ms.problems.logistic(3), stream()
    asked = {"steps": T, "seeds": 2, "measure": ["loss per client every 10"], **settings}
    thinned = ms.simulate(*given, folder=tmp_path / "run", checkpoint=0.0, **asked)
    whole = run.column("loss_per_client")
    assert thinned.column(name).shape == (2, 6, 3)
    np.testing.assert_allclose(thinned.column(name), whole[:, 9::10], atol=1e-5)
    np.testing.assert_array_equal(
        ms.load(tmp_path / "run").column(name), ms.simulate(*given, **asked).column(name)
    )
    frame = thinned.to_pandas()
    assert frame[name].notna().tolist() == (frame.t % 10 == 0).tolist()
    drawn = thinned.plot("loss per client every 10").axes[0].get_lines()
    assert drawn[0].get_xdata().tolist() == [10, 20, 30, 40, 50, 60]


def test_a_thinned_column_with_other_cells_is_refused(tmp_path):
    given = ms.fedogd(0.1), ms.problems.logistic(3), stream()
    folder = tmp_path / "run"
    run = ms.simulate(*given, steps=6, measure=["loss per client every 3"], folder=folder)
    table = pq.read_table(folder / "trace.parquet")
    for cells in (
        table["loss_per_client_every_3"].to_pylist()[::-1],
        [[0.5]] * 6,
        [None, None, [1.0, 2.0, 3.0], None, None, [1.0]],
    ):
        changed = table.set_column(
            table.column_names.index("loss_per_client_every_3"),
            pa.field("loss_per_client_every_3", pa.list_(pa.float32())),
            pa.array(cells, pa.list_(pa.float32())),
        )
        pq.write_table(changed, folder / "trace.parquet")
        with pytest.raises(BrokenRun, match="the column loss_per_client_every_3 "):
            ms.run.summary.check_trace(
                folder, ms.run.trace.File(folder / "trace.parquet"), run.summary
            )


def test_a_trace_of_format_1_is_read(tmp_path):
    made = ms.simulate(ms.fedogd(0.1), ms.problems.logistic(3), stream(), steps=4)
    path = made.save(tmp_path / "run") / "trace.parquet"
    table = pq.read_table(path)
    for number, outcome in (
        (b"1", None),
        (b"5", "trace format 5, this version reads 1 and 2 and 3 and 4"),
    ):
        pq.write_table(
            table.replace_schema_metadata({b"mainstem.trace": number, b"seeds": b"1"}), path
        )
        if outcome is None:
            np.testing.assert_array_equal(ms.run.trace.File(path)["loss"][0], made.loss)
        else:
            with pytest.raises(ms.errors.BadData, match=outcome):
                ms.run.trace.File(path)


def test_figures_and_comparisons_have_them(run):
    assert run.plot("auc").axes[0].get_ylabel() == "AUC(t)"
    drawn = run.plot("loss per client").axes[0]
    assert [line.get_label() for line in drawn.get_lines()] == [
        "worst tenth of the clients",
        "median client",
        "best tenth",
    ]
    assert "auc" in str(ms.compare([run], "auc"))
    assert {"auc", "f1", "log_loss", "loss_per_client"} <= set(run.to_pandas().columns)


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        (["score"], "measure must be one of .*loss_per_client, predictions, scores"),
        (
            ["hinge per client"],
            "one of correct_per_client, loss_per_client, got 'hinge_per_client'",
        ),
        ([3], "measure must be one of"),
        (["loss per client every 3"], "every n-th step for n up to 2"),
        (["loss per client every 0"], "measure must be one of"),
    ],
)
def test_unknown_names_are_refused(measure, words):
    with pytest.raises(BadParameter, match=words):
        ms.simulate(ms.fedogd(0.1), ms.problems.logistic(3), stream(), steps=2, measure=measure)


def test_scores_need_two_classes():
    with pytest.raises(BadParameter, match="problems with two classes"):
        ms.simulate(
            ms.fedogd(0.1), ms.problems.linear(3), ms.streams.arrays(np.ones((4, 3)), np.ones(4), 2),
            steps=2, measure=["scores"],
        )  # fmt: skip
    plain = ms.simulate(ms.fedogd(0.1), ms.problems.logistic(3), stream(), steps=2)
    with pytest.raises(MainstemError, match=r'auc: .*measure=\["scores"\]'):
        ms.measure.auc(plain)


def test_a_column_of_another_number_of_clients_is_refused(run, tmp_path):
    folder = run.save(tmp_path / "run")
    with pytest.raises(BrokenRun, match=r"has 3 clients, run\.json 4"):
        ms.run.summary.check_trace(
            folder, ms.run.trace.File(folder / "trace.parquet"), run.summary._replace(clients=4)
        )
