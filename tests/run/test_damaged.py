"""Damaged run folders: they are read, or refused with one line that names the file and the fault."""

import hashlib
import io
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomli_w

import mainstem as ms
from mainstem.errors import BrokenRun

PROBLEM, STREAM = ms.problems.softmax(64, 10), ms.streams.digits(clients=10)


@pytest.fixture(scope="module")
def run():
    return ms.simulate(ms.fedomd(0.3), PROBLEM, STREAM, steps=6, seeds=2)


@pytest.fixture
def saved(run, tmp_path):
    return run.save(tmp_path / "run")


def sealed(folder, name, data):
    """Replaces a file by another one, with a checksum that fits."""
    (folder / name).write_bytes(data)
    content = json.loads((folder / "run.json").read_text())
    content["sha256"][name] = hashlib.sha256(data).hexdigest()
    (folder / "run.json").write_text(json.dumps(content))


def refused(folder, name):
    """The refusal is one line that names the file."""
    with pytest.raises(BrokenRun) as caught:
        ms.load(folder)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


FIELDS = (
    "steps",
    "seeds",
    "clients",
    "parameters",
    "dtype",
    "shared",
    "uplink_bits",
    "downlink_bytes",
)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", ["gone", None, "many", -1, 1e400, [], {}, [None]])
def test_a_field_of_the_summary_that_makes_no_sense(saved, field, value):
    content = json.loads((saved / "run.json").read_text())
    content[field] = value
    if value == "gone":
        del content[field]
    (saved / "run.json").write_text(json.dumps(content))
    assert field in refused(saved, "run.json")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("uplink_bytes", value) for value in (None, "many", -1, 0.5, [])),
        *(("downlink_bits", value) for value in (None, "many", -1, 1e400, [])),
        *(("every", value) for value in (None, "many", -1, 0, 4, 0.5, [])),
        *(("labels", value) for value in ("many", 3, {}, [None], [[]])),
        *(("names", value) for value in ("many", 3, {}, [None], ["a"], [*range(10)])),
        *(("diverged", value) for value in (None, "many", 3, {}, [None], [[0, 1]], [[0, -1, 1]])),
        *(("diverged", [each]) for each in ([99, 5, 1], [0, 7, 1], [0, 0, 1])),
    ],
)
def test_a_field_that_makes_no_sense_in_a_run_of_this_size(saved, field, value):
    content = json.loads((saved / "run.json").read_text())
    (saved / "run.json").write_text(json.dumps(content | {field: value}))
    assert field in refused(saved, "run.json")


@pytest.mark.parametrize(
    ("field", "value"), [("steps", 7), ("seeds", [0]), ("seeds", [0, 1, 2]), ("clients", 11)]
)
def test_another_size_than_the_files_have(saved, field, value):
    content = json.loads((saved / "run.json").read_text())
    (saved / "run.json").write_text(json.dumps(content | {field: value}))
    refused(saved, "trace.parquet" if field == "steps" else "model.npz")


@pytest.mark.parametrize(
    "names", [{}, {"../outside": "00"}, {"spec.toml": "00", "/etc/hostname": "00"}, []]
)
def test_seals_of_other_files(saved, names):
    content = json.loads((saved / "run.json").read_text())
    (saved / "run.json").write_text(json.dumps(content | {"sha256": names}))
    assert "seal" in refused(saved, "run.json")


@pytest.mark.parametrize("name", ["run.json", "spec.toml", "trace.parquet", "model.npz"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "device", "nothing"])
def test_what_is_no_file(saved, name, kind):
    (saved / name).unlink()
    if kind == "folder":
        (saved / name).mkdir()
    elif kind == "pipe":
        os.mkfifo(saved / name)
    elif kind == "device":
        (saved / name).symlink_to("/dev/zero")
    if kind == "nothing" and name == "run.json":
        assert "was not finished" in refused(saved, "run")
    else:
        refused(saved, name)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"algorithm": []},
        {"algorithm": [{"name": 3}], "problem": {}, "stream": {}, "simulate": {}},
        {"algorithm": [1], "problem": {}, "stream": {}, "simulate": {}},
        {"algorithm": [{"name": "fedogd"}], "problem": 3, "stream": {}, "simulate": {}},
    ],
)
def test_a_spec_that_is_none(saved, spec):
    sealed(saved, "spec.toml", tomli_w.dumps(spec).encode())
    refused(saved, "spec.toml")


@pytest.mark.parametrize(
    "junk",
    [b"", b"\x00" * 100, b"PK\x03\x04", np.random.default_rng(0).bytes(999)],
    ids=["nothing", "zeros", "an archive", "noise"],
)
@pytest.mark.parametrize("name", ["spec.toml", "trace.parquet", "model.npz"])
def test_files_of_junk(saved, name, junk):
    sealed(saved, name, junk)
    refused(saved, name)


def arrays(**content):
    buffer = io.BytesIO()
    np.savez(buffer, **content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "model",
    [
        {},
        {"server": np.zeros(650)},
        {"server": np.zeros((2, 651))},
        {"server": np.zeros((2, 650), complex)},
        {"server": np.array(["a", "b"])},
        {"server": np.float64(3)},
        {"server": np.zeros((2, 650)), "clients": np.zeros((2, 9, 650))},
        {"server": np.zeros((2, 650)), "stranger": np.zeros(1)},
    ],
)
def test_models_of_other_sizes_and_kinds(saved, model):
    sealed(saved, "model.npz", arrays(**model))
    refused(saved, "model.npz")


@pytest.mark.parametrize(
    ("columns", "seeds"),
    [
        ({"t": range(12), "loss": range(11)}, b"2"),
        ({"t": range(12), "loss": range(12)}, b"3"),
        ({"t": range(12), "loss": range(12)}, b"two"),
        ({"t": range(12), "other": range(12)}, b"2"),
        ({"t": range(12), "loss": list("abcdefghijkl")}, b"2"),
    ],
)
def test_traces_of_other_lengths_and_kinds(saved, columns, seeds):
    shortest = min(map(len, columns.values()))
    made = pa.table({name: list(values)[:shortest] for name, values in columns.items()})
    buffer = io.BytesIO()
    pq.write_table(made.replace_schema_metadata({"seeds": seeds}), buffer)
    sealed(saved, "trace.parquet", buffer.getvalue())
    refused(saved, "trace.parquet")


def test_the_numbers_are_read_although_the_spec_is_of_another_world(saved, run):
    tables = {
        "algorithm": [{"name": "fedogd", "step": {"name": "constant", "parameters": "a"}}],
        "problem": {"name": "softmax", "features": 10**30, "classes": [1]},
        "stream": {"name": "csv", "path": "/dev/zero", "target": "y"},
        "simulate": {"steps": 6},
    }
    sealed(saved, "spec.toml", tomli_w.dumps(tables).encode())
    found = ms.load(saved)
    assert np.array_equal(found.loss, run.loss)
    assert found.problem is None
    assert found.algorithm is None


def test_a_folder_of_run_folders_names_them(run, tmp_path):
    run.save(tmp_path / "runs" / "first")
    with pytest.raises(BrokenRun, match="is not a run folder: it contains the run folders first"):
        ms.load(tmp_path / "runs")
