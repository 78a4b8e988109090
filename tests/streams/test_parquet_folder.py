"""Folders of Parquet files: the rows are those of the files, in any chunks, and what cannot be read is refused."""

import gc
import os
import pickle
import threading
import warnings
import weakref

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mainstem as ms
from mainstem import experiment
from mainstem.errors import BadData, MainstemError
from mainstem.spec import plain
from mainstem.streams import parquet, parquet_folder
from mainstem.streams.prefetch import Prefetch

LENGTHS = {"east": 41, "north": 57, "west": 30}
ARGUMENTS = {"target": "load", "features": ["heat", "wind"]}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Blocks that a file has many of; row groups of 10 rows, so that a block ends within one."""
    monkeypatch.setattr(parquet_folder, "BLOCK", 7)


def table(name):
    draw, rows = np.random.default_rng(len(name)), LENGTHS[name]
    return pd.DataFrame(
        {
            "heat": draw.normal(size=rows),
            "wind": draw.integers(0, 9, rows),
            "load": draw.normal(size=rows),
            "state": draw.integers(0, 2, rows),
            "zone": draw.choice(["a", "b"], rows),
        }
    )


def write(folder, **changed):
    """A file for each client; `changed` has other tables."""
    folder.mkdir(exist_ok=True)
    for name in LENGTHS:
        rows = pa.Table.from_pandas(changed.get(name, table(name)), preserve_index=False)
        pq.write_table(rows, folder / f"{name}.parquet", row_group_size=10)
    return folder


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "data")


def joined():
    return pd.concat([table(name).assign(name=name) for name in LENGTHS])


def equal(one, other):
    """The same samples, with nothing where a client has none."""
    (shown, hidden, *here), (features, target, *present) = one, other
    assert [x.tolist() for x in here] == [x.tolist() for x in present]
    mask = here[0] > 0 if here else np.ones(hidden.shape, bool)
    np.testing.assert_array_equal(shown[mask], features[mask])
    np.testing.assert_array_equal(hidden[mask], target[mask])


@pytest.mark.parametrize("ends", ["silent", "repeat", "cut"])
def test_a_folder_is_a_file_with_the_names_as_keys(folder, ends, tmp_path):
    joined().to_parquet(tmp_path / "all.parquet")
    one = parquet(folder, **ARGUMENTS, ends=ends)
    other = parquet(tmp_path / "all.parquet", key="name", **ARGUMENTS, ends=ends)
    assert isinstance(one.source, parquet_folder.ParquetFolder)
    assert (one.clients, one.steps, one.source.names) == (3, other.steps, list(LENGTHS))
    equal(one.chunk(0, 1, one.steps or 140), other.chunk(0, 1, one.steps or 140))


def test_any_chunks_in_any_order_have_the_same_samples(folder):
    stream = parquet(folder, **ARGUMENTS, ends="repeat")
    whole = parquet(folder, **ARGUMENTS, ends="repeat").chunk(0, 1, 200)
    order = [(1, 1), (1, 8), (9, 16), (17, 30), (20, 60), (150, 200), (3, 5), (6, 9), (9, 9)]
    for first, last in [*order, *np.sort(np.random.default_rng(0).integers(1, 201, (15, 2)))]:
        for part, expected in zip(stream.chunk(3, first, last), whole, strict=True):
            np.testing.assert_array_equal(part, expected[first - 1 : last])


def test_a_run_has_the_same_trace_for_any_chunk(folder):
    stream, problem = parquet(folder, **ARGUMENTS), ms.problems.linear(2)
    short, whole = (
        ms.simulate(ms.fedogd(0.01), problem, stream, steps=57, chunk=chunk) for chunk in (19, 57)
    )
    assert (short.loss == whole.loss).all()
    assert (short.model == whole.model).all()


@pytest.mark.parametrize("classes", [True, [1, 0], ["1", "0"]])
def test_labels_are_those_of_a_file(folder, classes, tmp_path):
    words = {name: table(name).astype({"state": str}) for name in LENGTHS}
    changed = words if classes == ["1", "0"] else {}
    write(folder, **changed)
    given = {"target": "state", "features": ["heat"], "classes": classes}
    pd.concat([pd.read_parquet(folder / f"{name}.parquet") for name in LENGTHS]).assign(
        name=joined()["name"]
    ).to_parquet(tmp_path / "all.parquet")
    one = parquet(folder, **given)
    other = parquet(tmp_path / "all.parquet", key="name", **given)
    assert one.labels == other.labels
    equal(one.chunk(0, 1, 57), other.chunk(0, 1, 57))


def test_labels_that_the_problem_does_not_have_are_refused_before_the_run(folder):
    stream = parquet(folder, target="wind", features=["heat"], classes=True)
    with pytest.raises(BadData, match="logistic: wants labels 0 to 1, the stream has 8"):
        ms.simulate(ms.fedogd(0.1), ms.problems.logistic(1), stream, steps=3)
    stream = parquet(folder, target="state", features=["heat"], classes=[0, 2])
    with pytest.raises(BadData, match=r"'state' row \d \(client \w+\) holds the label 1, classes"):
        stream.chunk(0, 1, 57)


def test_a_key_deals_the_rows_of_all_files_in_the_order_of_their_names(folder, tmp_path):
    joined().to_parquet(tmp_path / "all.parquet")
    one = parquet(folder, key="zone", **ARGUMENTS)
    other = parquet(tmp_path / "all.parquet", key="zone", **ARGUMENTS)
    assert one.source.names == ["a", "b"]
    equal(one.chunk(0, 1, one.steps), other.chunk(0, 1, one.steps))


def test_gaps_scales_and_many_files_are_spooled(folder, monkeypatch):
    scaled = parquet(folder, **ARGUMENTS, scale=ms.parts.standardised())
    assert scaled.source.names == list(LENGTHS)
    one = parquet(folder, **ARGUMENTS)
    monkeypatch.setattr(parquet_folder, "BUFFERS", 100)
    other = parquet(folder, **ARGUMENTS)
    assert type(scaled.source) is type(other.source) is not type(one.source)
    assert one == other
    equal(one.chunk(0, 1, 57), other.chunk(0, 1, 57))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e39])
@pytest.mark.parametrize(("column", "key"), [("heat", None), ("load", None), ("heat", "zone")])
def test_a_number_that_is_none_is_refused_with_its_file_row_and_client(
    tmp_path, value, column, key
):
    bad = table("north")
    bad.loc[41, column] = value
    client = bad.zone[41] if key else "north"
    wanted = rf"parquet: north.parquet: column '{column}' row 42 \(client {client}\) holds"
    with pytest.raises(BadData, match=wanted):
        parquet(write(tmp_path / "data", north=bad), key=key, **ARGUMENTS).chunk(0, 30, 50)


def test_a_bad_row_that_is_only_read_ahead_harms_nobody(tmp_path):
    bad = table("west")
    bad.loc[12, "heat"] = np.nan
    stream = parquet(write(tmp_path / "data", west=bad), **ARGUMENTS)
    for _ in range(2):
        assert stream.chunk(0, 1, 4)[0].shape == (4, 3, 2)
        with pytest.raises(BadData, match=r"west.parquet: column 'heat' row 13"):
            stream.chunk(0, 5, 14)


def test_folders_that_are_none_are_refused(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadData, match=r"parquet: there are no files \*.parquet in the folder"):
        parquet(tmp_path / "empty", **ARGUMENTS)
    with pytest.raises(BadData, match="parquet: there is no file"):
        parquet(tmp_path / "nowhere", **ARGUMENTS)
    with pytest.raises(BadData, match=r"east.parquet: there is no column 'rain', only heat"):
        parquet(folder, "load", features=["rain"])
    write(folder, west=table("west").assign(rain=0.0))
    with pytest.raises(BadData, match=r"west.parquet and east.parquet have .* only one has 'rain'"):
        parquet(folder, "load")
    assert parquet(folder, **ARGUMENTS).clients == 3
    write(folder, west=table("west")[:0])
    with pytest.raises(BadData, match=r"west.parquet has no rows"):
        parquet(folder, **ARGUMENTS)


@pytest.mark.parametrize("key", [None, "zone"])
@pytest.mark.parametrize("place", ["page", "footer"])
def test_a_damaged_file_is_refused_by_name(folder, key, place):
    path = folder / "north.parquet"
    content = bytearray(path.read_bytes())
    content[slice(4, 400) if place == "page" else slice(-200, -100)] = bytes([255]) * 100
    path.write_bytes(content)
    with pytest.raises(BadData, match=r"parquet: north.parquet cannot be read: \w+"):
        parquet(folder, key=key, **ARGUMENTS).chunk(0, 1, 2)


def test_a_damaged_page_of_a_single_file_is_refused(folder):
    path = folder / "north.parquet"
    content = bytearray(path.read_bytes())
    content[4:400] = bytes([255]) * 396
    path.write_bytes(content)
    with pytest.raises(BadData, match=r"parquet: north.parquet cannot be read: \w+"):
        parquet(path, **ARGUMENTS)


@pytest.mark.parametrize(("change", "why"), [("gone", "is gone"), ("other", "has changed since")])
def test_a_file_that_changes_or_vanishes_meanwhile_is_refused(folder, change, why):
    stream = parquet(folder, **ARGUMENTS)
    stream.chunk(0, 1, 1)
    if change == "gone":
        (folder / "west.parquet").unlink()
    else:
        table("west")[::-1].to_parquet(folder / "west.parquet")
    with pytest.raises(BadData, match=f"parquet: west.parquet {why}"):
        stream.chunk(0, 20, 30)


def test_a_folder_is_a_value(folder):
    one = parquet(folder, **ARGUMENTS, ends="cut")
    again = pickle.loads(pickle.dumps(one))
    assert one == again == parquet(str(folder), **ARGUMENTS, ends="cut")
    assert hash(one) == hash(again)
    assert repr(again) == repr(one)
    assert experiment.made("[stream]", ms.streams, plain(one)) == one
    equal(again.chunk(0, 1, 30), one.chunk(0, 1, 30))
    late = pickle.dumps(one)
    write(folder, west=table("west")[::-1])
    assert parquet(folder, **ARGUMENTS, ends="cut") != one
    for make in (lambda: one.replace(ends="silent"), lambda: pickle.loads(late).chunk(0, 1, 1)):
        with pytest.raises(MainstemError, match="data has changed since: its checksum is"):
            make()


def test_threads_end_by_themselves_and_a_fork_reads_on(folder):
    stream = parquet(folder, **ARGUMENTS)
    expected = parquet(folder, **ARGUMENTS).chunk(0, 9, 16)
    stream.chunk(0, 1, 8)
    with warnings.catch_warnings():  # of threads beside a fork
        warnings.simplefilter("ignore")
        child = os.fork()
    if not child:
        same = all(map(np.array_equal, stream.chunk(0, 9, 16), expected))
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    equal(stream.chunk(0, 9, 16), expected)
    del stream
    gc.collect()
    for thread in threading.enumerate():
        if thread.name.startswith("mainstem-prefetch"):
            thread.join(10)
            assert not thread.is_alive()


def test_a_stream_that_is_gone_has_closed_its_files(folder):
    stream = parquet(folder, **ARGUMENTS)
    stream.chunk(0, 1, 57)
    read = weakref.ref(stream.source)
    gc.disable()
    try:
        del stream
        assert read() is None
    finally:
        gc.enable()


def test_the_next_range_is_read_while_the_last_one_is_in_use():
    calls, ready = [], threading.Event()

    def read(begin, end):
        calls.append((begin, end, threading.current_thread() is threading.main_thread()))
        if begin == 3:
            ready.set()
        return (np.arange(begin, end),)

    prefetch = Prefetch(read, steps=8)
    assert prefetch(0, 3)[0].tolist() == [0, 1, 2]
    assert ready.wait(10)
    assert prefetch(3, 6)[0].tolist() == [3, 4, 5]
    assert prefetch(3, 6)[0].tolist() == [3, 4, 5]  # another seed
    assert prefetch(6, 8)[0].tolist() == [6, 7]
    assert calls == [(0, 3, True), (3, 6, False), (6, 8, False)]
