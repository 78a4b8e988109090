"""Comparisons: labels, tables, exports, figures, and runs that cannot be compared."""

import csv
import io

import numpy as np
import pytest

import mainstem as ms
from mainstem.report import figures

PROBLEM, STREAM = ms.problems.softmax(64, 10), ms.streams.digits(clients=10)


def run(algorithm, **settings):
    return ms.simulate(algorithm, PROBLEM, STREAM, **{"steps": 12, "seeds": 3} | settings)


@pytest.fixture(scope="module")
def three():
    return [run(ms.fedogd(0.3)), run(ms.fedogd(0.1)), run(ms.ofedavg(0.3, 0.5))]


@pytest.fixture(scope="module")
def compared(three):
    return ms.compare(three)


def test_labels_have_the_parameters_that_differ(three, compared):
    assert list(compared.runs) == ["fedogd step=0.3", "fedogd step=0.1", "ofedavg"]
    again = ms.compare([three[0], three[0]])
    assert list(again.runs) == ["fedogd", "fedogd 2"]
    parts = [ms.fedomd(0.1, sync=ms.parts.every(period)) for period in (2, 3)]
    named = ms.compare([run(each, seeds=1) for each in parts])
    assert list(named.runs) == ["fedomd sync=every(period=2)", "fedomd sync=every(period=3)"]
    precise = ms.compare([run(ms.fedogd(0.3), dtype=dtype) for dtype in ("float32", "float64")])
    assert list(precise.runs) == ["fedogd dtype=float32", "fedogd dtype=float64"]


def test_means_errors_and_paired_differences(three, compared):
    ends = [each.accuracy[:, -1] for each in three]
    for row, end in zip(compared, ends, strict=True):
        assert row["accuracy"] == pytest.approx(end.mean())
        assert row["accuracy_error"] == pytest.approx(end.std(ddof=1) / 3**0.5)
        away = end - ends[0]  # seed by seed
        assert row["difference"] == pytest.approx(away.mean())
        assert row["difference_error"] == pytest.approx(away.std(ddof=1) / 3**0.5)
    assert compared.rows[0]["uplink_saving"] == 0


def test_one_seed_has_no_error(three):
    row = ms.compare([run(ms.fedogd(0.3), seeds=1)]).rows[0]
    assert list(row) == ["algorithm", "accuracy", "uplink_bits", "uplink_saving"]


def test_it_prints(compared):
    head, *lines = str(compared).splitlines()
    assert head.split("  ")[0] == "algorithm"
    assert len(lines) == 3
    assert " ± " in lines[0]
    assert len({len(line) for line in [head, *lines]}) == 1


def test_it_sorts(compared):
    best = compared.sorted(descending=True)
    found = [row["accuracy"] for row in best]
    assert found == sorted(found, reverse=True)
    assert {row["algorithm"]: row for row in best} == {row["algorithm"]: row for row in compared}
    assert next(iter(compared.sorted("uplink bits").runs)) == "ofedavg"
    with pytest.raises(ms.MainstemError, match="no column mse, only algorithm, accuracy"):
        compared.sorted("mse")


def test_it_exports(compared, tmp_path):
    frame = compared.to_pandas()
    assert frame.accuracy.tolist() == [row["accuracy"] for row in compared]
    rows = list(csv.DictReader(io.StringIO(compared.to_csv(tmp_path / "table.csv"))))
    assert [float(row["accuracy_error"]) for row in rows] == frame.accuracy_error.tolist()
    assert (tmp_path / "table.csv").read_text() == compared.to_csv()
    latex = compared.to_latex(tmp_path / "table.tex")
    assert (tmp_path / "table.tex").read_text() == latex + "\n"
    assert r"fedogd step=0.1 & $" in latex
    assert latex.count(r"\pm") == 5  # the baseline differs by 0
    assert r"0.0 \%" in latex


def test_the_figure_has_a_line_for_each_run(compared, three):
    axes = compared.figure.axes[0]
    assert axes.get_xlabel() == "step t"
    assert len(axes.lines) == 3
    assert len(three[0].plot("loss").axes[0].lines) == 1


@pytest.mark.slow
def test_regret_names_its_kind_and_is_a_curve(three):
    compared = ms.compare(three[:2], y="regret")
    assert compared.rows[0]["global_regret"] == pytest.approx(float(three[0].regret()))
    axes = compared.figure.axes[0]
    assert axes.get_ylabel() == "global regret"
    assert len(axes.lines[0].get_xdata()) == 12
    alone = three[0].plot("regret").axes[0]
    assert alone.get_ylabel() == "global regret"
    assert np.allclose(alone.lines[0].get_ydata(), three[0].regret("all").values.mean(axis=0))


@pytest.mark.slow
def test_kinds_that_are_equal_share_an_axis(three):
    own = run(ms.fedomd(0.3, sync=ms.parts.every(3)), measure=["collective"])
    compared = ms.compare([three[0], own], y="regret")
    assert compared.kind == "collective"
    assert compared.rows[0]["collective_regret"] == pytest.approx(float(three[0].regret()))
    assert compared.rows[1]["collective_regret"] == pytest.approx(float(own.regret()))


def test_a_pareto_picture(three):
    compared = ms.compare(three, x="uplink bits", y="accuracy")
    axes = compared.figure.axes[0]
    assert axes.get_xlabel() == "bits sent up"
    assert axes.get_ylabel() == "accuracy(t)"
    assert len(axes.containers) == 3
    assert axes.get_xscale() == "linear"
    front = axes.lines[0]
    accuracy, bits = ([row[name] for row in compared] for name in ("accuracy", "uplink_bits"))
    assert bits[2] < bits[0] == bits[1]
    best = max(accuracy[:2])
    assert accuracy[2] < best
    np.testing.assert_allclose(front.get_ydata(), [accuracy[2], best])
    np.testing.assert_allclose(front.get_xdata(), [bits[2], bits[0]])


def test_other_data_are_refused_and_other_lengths_marked(three):
    other = ms.simulate(ms.fedogd(0.3), PROBLEM, ms.streams.digits(clients=20), steps=12, seeds=3)
    with pytest.raises(
        ms.MainstemError, match=r"run 2 saw other data than run 1 \(clients is 20 here"
    ):
        ms.compare([three[0], other])
    longer = ms.compare([three[0], run(ms.fedogd(0.3), steps=15)])
    assert [row["steps"] for row in longer] == [12, 15]
    assert "difference" not in longer.rows[0]
    with pytest.raises(ms.MainstemError, match="at least one run"):
        ms.compare([])


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda it: it,
        lambda it: ms.streams.sometimes(it, 0.5),
        lambda it: ms.streams.in_batches(it, 2),
    ],
    ids=["csv", "sometimes", "in_batches"],
)
def test_a_loaded_run_is_on_the_data_of_a_fresh_one(wrapped, tmp_path):
    """The order of a table's entries in a file is another one than in memory."""
    rows = ["site,a,y", *(f"{n % 2},{'' if n == 5 else n},{n}" for n in range(12))]
    (tmp_path / "data.csv").write_text("\n".join(rows))
    stream = wrapped(
        ms.streams.csv(
            tmp_path / "data.csv",
            "y",
            "site",
            missing=ms.parts.last_value(),
            scale=ms.parts.standardised(),
        )
    )
    problem = ms.problems.linear(1)
    problem = ms.problems.batched(problem) if "in_batches" in repr(stream) else problem
    fresh = ms.simulate(ms.fedogd(0.1), problem, stream, steps=3)
    loaded = ms.load(fresh.save(tmp_path / "run"))
    assert len(ms.compare([fresh, loaded])) == 2


def test_a_single_run_and_runs_of_other_seeds(three):
    assert len(ms.compare(three[0])) == 1
    seeds = [run(ms.fedogd(0.3), seeds=None, seed=seed) for seed in (0, 5)]
    assert list(ms.compare(seeds).runs) == ["fedogd seed=0", "fedogd seed=5"]


def test_a_number_for_each_client_is_not_compared(three):
    each = run(ms.fedogd(0.3), measure=["loss per client every 3"])
    for axes in ({"y": "loss per client every 3"}, {"x": "loss_per_client"}):
        with pytest.raises(ms.MainstemError, match=r"for each client: see it with run.plot\("):
            ms.compare([each], **axes)


def test_a_diverging_curve_does_not_flatten_the_others():
    fine = np.full((2, 20), 0.5)
    wild = np.where(np.arange(20) < 15, 10.0 ** (2 * np.arange(20)), np.inf) * np.ones((2, 1))
    axes = figures.curves({"fine": fine, "wild": wild}, "loss").axes[0]
    assert axes.get_yscale() == "log"
    assert figures.curves({"fine": fine}, "loss").axes[0].get_yscale() == "linear"
