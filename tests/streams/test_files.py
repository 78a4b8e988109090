"""CSV and Parquet files: what is read is what the file contains, and what cannot be read is refused."""

import gc
import itertools
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mainstem as ms
from mainstem.errors import BadData
from mainstem.streams import files

KINDS = ("csv", "parquet")
kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(autouse=True)
def spools(tmp_path, monkeypatch):
    """A separate folder for the spools, so that the test sees what is left behind."""
    folder = tmp_path / "spools"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    gc.collect()
    assert not list(folder.iterdir()), "a spool was left behind"


def write(kind, table, folder):
    path = folder / f"data.{kind}"
    table.to_csv(path, index=False) if kind == "csv" else table.to_parquet(path, index=False)
    return str(path)


def opened(kind, path, **arguments):
    return getattr(ms.streams, kind)(path, **arguments)


def table(rows=200, seed=0):
    """Clients b, a and c with different numbers of rows, mixed up in time."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "zone": rng.choice(list("bac"), rows, p=[0.5, 0.3, 0.2]),
            "heat": rng.normal(size=rows),
            "wind": rng.integers(0, 9, rows),
            "load": rng.normal(size=rows),
        }
    )


@kinds
def test_each_clients_rows_come_in_the_order_of_the_file(kind, tmp_path):
    data = table()
    stream = opened(kind, write(kind, data, tmp_path), target="load", key="zone")
    assert (stream.clients, stream.steps) == (3, data.groupby("zone").size().max())
    assert stream.names == ("a", "b", "c")
    shown, hidden, here = stream.chunk(0, 1, stream.steps)
    for k, zone in enumerate("abc"):
        mine = data[data.zone == zone]
        assert here[:, k].tolist() == [1] * len(mine) + [0] * (stream.steps - len(mine))
        np.testing.assert_allclose(shown[: len(mine), k], mine[["heat", "wind"]], rtol=1e-6)
        np.testing.assert_allclose(hidden[: len(mine), k], mine.load, rtol=1e-6)
    assert (shown.dtype, hidden.dtype) == (np.float32, np.float32)
    assert stream.rows() is None


@kinds
def test_chunks_and_batches_do_not_matter(kind, tmp_path, monkeypatch):
    path = write(kind, table(), tmp_path)
    whole = opened(kind, path, target="load", key="zone")
    expected = whole.chunk(0, 1, whole.steps)
    monkeypatch.setattr(files, "BATCH", 7)  # rows of Parquet read at a time
    stream = opened(kind, path, target="load", key="zone")
    edges = [0, 1, 5, 6, 20, stream.steps]
    pieces = [stream.chunk(3, a + 1, b) for a, b in itertools.pairwise(edges)]
    for part in (0, 1):
        np.testing.assert_array_equal(
            np.concatenate([piece[part] for piece in pieces]), expected[part]
        )


def test_a_csv_of_several_blocks_is_read_whole(tmp_path):
    """Longer than one block of the reader (4 MiB)."""
    rows = 300_000
    data = pd.DataFrame(
        {"key": np.arange(rows) % 3, "x": np.arange(rows) * 1.0, "y": np.zeros(rows)}
    )
    path = write("csv", data, tmp_path)
    assert Path(path).stat().st_size > 4 << 20
    shown, _ = (stream := opened("csv", path, target="y", key="key")).chunk(0, 1, rows // 3)
    np.testing.assert_array_equal(shown[:, :, 0], np.arange(rows // 3 * 3).reshape(-1, 3))
    assert stream.steps == rows // 3


@kinds
def test_without_a_key_there_is_one_client(kind, tmp_path):
    data = table().drop(columns="zone")
    stream = opened(kind, write(kind, data, tmp_path), target="load")
    assert (stream.clients, stream.steps) == (1, 200)
    assert stream.names is None
    np.testing.assert_allclose(stream.chunk(0, 5, 5)[1][0, 0], data.load[4], rtol=1e-6)


@kinds
def test_features_may_be_named_and_labels_are_integers(kind, tmp_path):
    path = write(kind, table(), tmp_path)
    stream = opened(kind, path, target="wind", key="zone", features=["load"], classes=True)
    shown, hidden, _ = stream.chunk(0, 1, 4)
    assert shown.shape == (4, 3, 1)
    assert hidden.dtype == np.int32


def test_a_file_runs_in_the_simulator(tmp_path):
    path = write("csv", table(), tmp_path)
    stream = opened("csv", path, target="load", key="zone")
    run = ms.simulate(ms.fedogd(step=0.01), ms.problems.linear(2), stream, steps=20, progress=False)
    first = 0.5 * np.mean(np.square(stream.chunk(0, 1, 1)[1]))
    assert run.loss[0] == pytest.approx(first, rel=1e-5)  # the first model is zero
    with pytest.raises(BadData, match=f"at most {stream.steps}, the end of the stream, got 300"):
        ms.simulate(ms.fedogd(step=0.01), ms.problems.linear(2), stream, steps=300)


@kinds
def test_the_spool_lives_as_long_as_the_stream(kind, tmp_path, spools):
    stream = opened(kind, write(kind, table(), tmp_path), target="load", key="zone")
    assert len(list(spools.iterdir())) == 1
    chunk = stream.chunk
    del stream
    gc.collect()
    assert chunk(0, 1, 1)[0].shape == (1, 3, 2)  # whoever can still ask still gets an answer
    del chunk
    gc.collect()
    assert not list(spools.iterdir())


def spoiled(column, row, value):
    data = table()
    data[column] = data[column].astype(object if isinstance(value, str) else float)
    data.loc[row, column] = value
    return data, data.zone[row]


@kinds
@pytest.mark.parametrize("column", ["heat", "load"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e39])
def test_a_gap_is_refused_with_its_row_and_client(kind, column, value, tmp_path):
    data, zone = spoiled(column, 41, value)
    with pytest.raises(BadData, match=rf"'{column}' row 42 \(client {zone}\) holds"):
        opened(kind, write(kind, data, tmp_path), target="load", key="zone")


@kinds
def test_a_gap_deep_in_the_file_is_counted_from_its_start(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BATCH", 7)
    data, zone = spoiled("heat", 150, np.nan)
    with pytest.raises(BadData, match=rf"row 151 \(client {zone}\)"):
        opened(kind, write(kind, data, tmp_path), target="load", key="zone")


def test_a_word_among_numbers_is_refused_with_its_row_and_client(tmp_path):
    data, zone = spoiled("heat", 41, "broken")
    path = write("csv", data, tmp_path)
    with pytest.raises(BadData, match=rf"'heat' row 42 \(client {zone}\) holds 'broken', not a"):
        opened("csv", path, target="load", key="zone")


@kinds
def test_a_fractional_label_is_refused_with_its_row_and_client(kind, tmp_path):
    data, zone = spoiled("wind", 41, 1.5)
    with pytest.raises(
        BadData, match=rf"'wind' row 42 \(client {zone}\) holds 1.5, not an integer"
    ):
        opened(kind, write(kind, data, tmp_path), target="wind", key="zone", classes=True)


@kinds
def test_a_row_of_nobody_is_refused(kind, tmp_path):
    data = table()
    data.loc[41, "zone"] = None
    with pytest.raises(BadData, match="column 'zone' row 42 is empty"):
        opened(kind, write(kind, data, tmp_path), target="load", key="zone")


@kinds
def test_a_column_of_dates_is_refused_by_name(kind, tmp_path):
    data = table().assign(when=pd.date_range("2020-01-01", periods=200, freq="h"))
    path = write(kind, data, tmp_path)
    with pytest.raises(
        BadData, match=r"column 'when' is not numeric but timestamp.*such as 'when.hour'"
    ):
        opened(kind, path, target="load", key="zone")
    assert opened(kind, path, target="load", key="zone", features=["heat"]).clients == 3


@kinds
@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        ({"target": "price"}, "price"),
        ({"target": "load", "key": "place"}, "place"),
        ({"target": "load", "features": ["heat", "rain"]}, "rain"),
    ],
)
def test_a_missing_column_is_refused_with_those_there_are(kind, arguments, missing, tmp_path):
    path = write(kind, table(), tmp_path)
    with pytest.raises(BadData, match=f"no column '{missing}', only zone, heat, wind, load"):
        opened(kind, path, **arguments)


@kinds
def test_other_refusals(kind, tmp_path):
    with pytest.raises(BadData, match=rf"{kind}: \S+\.{kind}: the file has no rows"):
        opened(kind, write(kind, table()[:0], tmp_path), target="load", key="zone")
    with pytest.raises(BadData, match="no feature columns are left beside 'load'"):
        opened(kind, write(kind, table()[["zone", "load"]], tmp_path), target="load", key="zone")
    with pytest.raises(BadData, match=f"{kind}: there is no file /.*/nowhere"):
        opened(kind, "nowhere", target="load")
    (tmp_path / "empty").write_text("")
    with pytest.raises(BadData, match="empty cannot be read"):
        opened(kind, str(tmp_path / "empty"), target="load")


def test_a_torn_csv_and_a_doubled_column_are_refused(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("x,y\n1,2\n3\n")
    with pytest.raises(BadData, match=r"data.csv cannot be read: .*Expected 2 columns, got 1"):
        opened("csv", str(path), target="y")
    path.write_text("x,x,y\n1,2,3\n")
    with pytest.raises(BadData, match="more than one column 'x'"):
        opened("csv", str(path), target="y")
