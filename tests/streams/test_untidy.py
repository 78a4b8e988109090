"""Data as it comes: labels that are no numbers, dates, missing values, data frames."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mainstem as ms
from mainstem import experiment, parts
from mainstem.errors import BadData, BadParameter
from mainstem.spec import plain
from mainstem.streams import csv, files, frame, parquet

HOURS = [datetime.datetime(2024, 5, 1, hour) for hour in (1, 2, 3, 1, 2)]
SITES = {
    "site": ["a", "a", "a", "b", "b"],
    "time": HOURS,
    "heat": [None, 2.0, None, 4.0, None],
    "wind": [1, 2, 3, 4, 5],
    "state": ["on", "off", "on", "on", "off"],
}
FEATURES = ["heat", "wind", "time.hour"]


def shown(stream):
    """The features of each client, one array for each."""
    sample = stream.rows()
    if sample is None:
        features, _, *present = stream.chunk(0, 1, stream.steps)
        here = present[0] > 0 if present else np.ones(features.shape[:2], bool)
    else:
        rows = stream.places(0, 1, stream.steps)
        features, here = np.asarray(sample.shown)[rows], rows >= 0
    return [features[here[:, k], k] for k in range(stream.clients)]


def made(kind, folder, **more):
    """The same rows as a stream of that kind."""
    table = pa.table(SITES)
    arguments = {"target": "state", "key": "site", "features": FEATURES, "classes": True} | more
    if kind == "csv":
        path = folder / "sites.csv"
        table.to_pandas().to_csv(path, index=False)
        return csv(path, **arguments)
    if kind == "parquet":
        path = folder / "sites.parquet"
        pq.write_table(table, path)
        return parquet(path, **arguments)
    kinds = {
        "pandas": table.to_pandas,
        "polars": lambda: pl.from_arrow(table),
        "arrow": lambda: table,
    }
    return frame(kinds[kind](), **arguments)


KINDS = ("csv", "parquet", "pandas", "polars", "arrow")


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_value_of_the_same_client_fills_a_gap(kind, tmp_path):
    stream = made(kind, tmp_path, missing=parts.last_value(start=-1.0, indicator=True))
    first, second = shown(stream)
    assert first.tolist() == [[-1, 1, 1, 1, 0, 0], [2, 2, 2, 0, 0, 0], [2, 3, 3, 1, 0, 0]]
    assert second.tolist() == [[4, 4, 1, 0, 0, 0], [4, 5, 2, 1, 0, 0]]
    assert stream.labels == ("off", "on")


@pytest.mark.parametrize("kind", KINDS)
def test_a_gap_is_refused_with_its_place(kind, tmp_path):
    with pytest.raises(BadData, match=r"column 'heat' row 1 \(client a\) holds nan"):
        made(kind, tmp_path)


@pytest.mark.parametrize(
    "part", [parts.last_value(), parts.running_mean(), parts.running_mean(2.0, True)]
)
def test_nothing_is_filled_from_the_future(part):
    """Later rows do not change earlier ones."""
    draw = np.random.default_rng(0)
    rows = np.where(draw.uniform(size=(30, 4)) < 0.4, np.nan, draw.normal(size=(30, 4)))
    for count in range(1, 31):
        assert np.array_equal(part.fill(rows)[:count], part.fill(rows[:count]))


def test_the_mean_is_a_plain_loop():
    draw = np.random.default_rng(1)
    rows = np.where(draw.uniform(size=(40, 3)) < 0.5, np.nan, draw.normal(size=(40, 3)))
    found = parts.running_mean(start=7.0).fill(rows)
    for t in range(40):
        for j in range(3):
            past = [x for x in rows[:t, j] if not np.isnan(x)]
            wanted = rows[t, j] if not np.isnan(rows[t, j]) else np.mean(past) if past else 7.0
            assert found[t, j] == pytest.approx(wanted, abs=1e-12)


def test_rows_without_an_order_are_not_filled():
    x = np.array([[1.0], [np.nan], [3.0], [4.0]])
    with pytest.raises(BadParameter, match="arrays: missing must be left out unless each client"):
        ms.streams.arrays(x, np.zeros(4), clients=2, missing=parts.last_value())
    with pytest.raises(
        BadData, match=r"features row 1 \(dealt to every client in turn\) holds nan"
    ):
        ms.streams.arrays(x, np.zeros(4), clients=2)


@pytest.mark.parametrize(
    ("target", "classes", "labels", "found"),
    [
        (["b", "a", "b"], False, ("a", "b"), [1, 0, 1]),
        ([True, False, True], False, (False, True), [1, 0, 1]),
        ([True, True, True], False, (False, True), [1, 1, 1]),
        ([-1.0, 1.0, 1.0], True, (-1.0, 1.0), [0, 1, 1]),
        ([0.0, 2.0, 1.0], True, None, [0, 2, 1]),
        ([0.5, 2.0, 1.0], False, None, [0.5, 2.0, 1.0]),
        ([3, 1, 1], True, None, [3, 1, 1]),
    ],
    ids=repr,
)
def test_labels(target, classes, labels, found):
    stream = ms.streams.arrays(np.zeros((3, 1)), target, clients=1, classes=classes)
    assert stream.labels == labels
    assert stream.rows().hidden.tolist() == found
    table = pd.DataFrame({"x": [0.0, 0.0, 0.0], "y": target})
    if classes or labels:
        assert frame(table, "y", classes=True, clients=1).labels == labels


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (["a", None, "b"], "target row 1 holds None, not an integer label"),
        (["a", 1.0, "b"], "labels must all be words, truth values or numbers"),
        ([0.0, np.nan, 1.0], "target row 1 holds nan, not an integer label"),
        ([0.0, 1.0, 1.5], "target row 2 holds 1.5, not an integer label"),
    ],
)
def test_labels_that_are_refused(target, message):
    with pytest.raises(BadData, match=message):
        ms.streams.arrays(
            np.zeros((3, 1)),
            np.array(target, object if "a" in target else None),
            clients=1,
            classes=True,
        )


def test_the_run_keeps_the_labels(tmp_path):
    draw = np.random.default_rng(0)
    x = draw.normal(size=(60, 2))
    words = np.where(x[:, 0] > 0, "up", "down")
    stream = ms.streams.sometimes(ms.streams.arrays(x, words, clients=3), 0.9)
    run = ms.simulate(
        ms.fedogd(0.5), ms.problems.logistic(2), stream, steps=20, folder=tmp_path / "run"
    )
    assert run.labels == ms.load(tmp_path / "run").labels == ("down", "up")
    numbers = ms.simulate(
        ms.fedogd(0.5), ms.problems.logistic(2),
        ms.streams.sometimes(ms.streams.arrays(x, (x[:, 0] > 0).astype(int), clients=3), 0.9), steps=20,
    )  # fmt: skip
    assert numbers.labels is None
    assert np.array_equal(run.loss, numbers.loss)


@pytest.mark.parametrize("kind", KINDS)
def test_dates(kind, tmp_path):
    names = ["time.year", "time.month", "time.day", "time.weekday", "time.yearday", "time.hour"]
    first, _ = shown(made(kind, tmp_path, features=[*names, "time.minute", "time.second"]))
    assert first[0].tolist() == [2024, 5, 1, 2, 122, 1, 0, 0]  # a Wednesday
    with pytest.raises(
        BadData, match=r"'wind.hour': column 'wind' is not a date but (int64|double)"
    ):
        made(kind, tmp_path, features=["wind.hour"])
    with pytest.raises(BadData, match=r"there is no column 'time\.era'"):
        made(kind, tmp_path, features=["time.era"])
    with pytest.raises(BadData, match=r"'time' is not numeric but .*such as 'time.hour'"):
        made(kind, tmp_path, features=["time"])


def test_an_experiment_file_can_say_it_all(tmp_path):
    made("csv", tmp_path, missing=parts.last_value())  # writes the file
    table = {
        "name": "csv",
        "path": str(tmp_path / "sites.csv"),
        "target": "state",
        "key": "site",
        "features": FEATURES,
        "classes": True,
        "missing": {"name": "running_mean", "indicator": True},
    }
    stream = experiment.made("[stream]", ms.streams, table)
    assert stream.labels == ("off", "on")
    assert stream.chunk(0, 1, 1)[0].shape == (1, 2, 6)
    assert experiment.made("[stream]", ms.streams, plain(stream)) == stream


def test_decimals_may_come_after_a_block_of_whole_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BLOCK", 64)
    rows = [f"0{n % 2},{n},,{n % 3}" for n in range(40)] + ["01,0.5,1.5,2"]
    (tmp_path / "long.csv").write_text("site,x,z,y\n" + "\n".join(rows) + "\n")
    stream = csv(
        tmp_path / "long.csv", "y", "site", ["x", "z"], classes=True, missing=parts.last_value(9.0)
    )
    assert stream.source.names == ["00", "01"]  # keys are text
    assert shown(stream)[1][-1].tolist() == [0.5, 1.5]
    assert shown(stream)[0][-1].tolist() == [38, 9]
    assert sorted(set(stream.targets().tolist())) == [0, 1, 2]


@pytest.mark.parametrize("text", ["site,größe,y\na,1,2\n", "site,x,y\nä,1,2\n"])
def test_other_encodings_are_refused_in_words(text, tmp_path):
    (tmp_path / "latin.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(BadData, match=r"csv: latin.csv cannot be read: .*UTF"):
        csv(tmp_path / "latin.csv", "y", "site")


@pytest.mark.parametrize("key", [None, np.nan, ""])
def test_a_row_of_nobody_is_refused(key):
    with pytest.raises(BadData, match="arrays: keys row 1 is empty: whose row is it"):
        ms.streams.arrays(np.zeros((3, 1)), np.zeros(3), keys=np.array(["a", key, "b"], object))


def test_other_things_are_no_frames():
    with pytest.raises(
        BadData, match="frame: wants a data frame of pandas, Polars, Arrow or Hugging Face"
    ):
        frame(3, "y")


@pytest.mark.parametrize("kind", ["frame", "csv", "arrays"])
def test_the_order_of_the_labels_can_be_given(kind, tmp_path):
    table = pd.DataFrame({"heat": [1.0, 2.0, 3.0], "state": ["fine", "faulty", "fine"]})
    table.to_csv(tmp_path / "data.csv", index=False)
    make = {
        "frame": lambda classes: ms.streams.frame(table, "state", clients=1, classes=classes),
        "csv": lambda classes: ms.streams.csv(tmp_path / "data.csv", "state", classes=classes),
        "arrays": lambda classes: ms.streams.arrays(
            table[["heat"]], table["state"], clients=1, classes=classes
        ),
    }[kind]
    found = make(["fine", "faulty", "gone"])
    assert found.labels == ("fine", "faulty", "gone")
    assert found.targets().tolist() == [0, 1, 0]
    assert make(True).targets().tolist() == [1, 0, 1]
    with pytest.raises(
        BadData, match="the target has the label 'faulty', classes has 'fine', 'no'"
    ):
        make(["fine", "no"])
    for wrong in ("fine", ["fine"], ["fine", "fine"], 3):
        with pytest.raises(BadParameter, match="classes must"):
            make(wrong)


@pytest.mark.parametrize(
    ("target", "features", "settings", "words"),
    [
        ("word", ["a"], {"classes": True}, "column 'word' row 2 .* holds nothing: drop the row"),
        ("y", ["a"], {}, "column 'y' row 3 .*: drop the row, a target has no gaps"),
        ("y", ["a"], {"missing": ms.parts.last_value()}, "'y' row 3 .*: drop the row"),
        ("a", ["b", "a"], {}, "the target 'a' is among the features"),
        ("a", ["b", "b"], {}, "features names 'b' more than once"),
        ("a", ["day.hours"], {}, r"no column 'day.hours', only .* \(parts of a date: year, month"),
        ("a", ["wrd"], {}, r"did you mean word\?"),
        ("a", ["day.hour"], {}, "not a date but string: convert it before"),
    ],
)
def test_what_to_do_about_a_column(tmp_path, target, features, settings, words):
    path = tmp_path / "gaps.csv"
    path.write_text("a,b,y,word,day\n1,1,1,on,31.12.\n2,2,2,,1.1.\n3,3,,off,2.1.\n")
    with pytest.raises(BadData, match=words):
        ms.streams.csv(path, target, features=features, **settings).rows()


def test_a_word_among_numbers_is_named_and_not_the_gaps_before_it(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("heat,load\n1,1\n,2\n3,3\nbroken,4\n")
    with pytest.raises(BadData, match=r"column 'heat' row 4 .* holds 'broken', not a number"):
        shown(csv(path, target="load", missing=parts.last_value()))
