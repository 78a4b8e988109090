"""Open Bandit: the log as it is loaded, the wheel that it comes from, and what is refused."""

import csv
import gzip
import io
import os
import subprocess
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mainstem import datasets
from mainstem.datasets import cache, catalogue, formats, open_bandit, proof, pypi
from mainstem.datasets.named_arrays import Arrays, fingerprint
from mainstem.errors import BadData, BadParameter, DataUnavailable

NAME = "open_bandit"
FILES = ("random_all.parquet", "item_context_random_all.csv.gz")

needs_pip = pytest.mark.skipif(find_spec("pip") is None, reason="pip is not installed")


def small() -> dict[str, np.ndarray]:
    """Four impressions of three items, the last one first; one kind of item feature is constant."""
    return {
        "timestamp": np.array([f"2019-11-24 00:00:0{s}.5+00:00" for s in (4, 1, 2, 3)]),
        "item_id": np.array([2, 0, 1, 2]),
        "position": np.array([3, 1, 2, 1]),
        "click": np.array([1, 0, 0, 1]),
        "propensity_score": np.array([0.5, 0.25, 1.0, 1 / 3]),
        "user_feature_0": np.array(["p", "p", "p", "p"]),
        "user_feature_2": np.array(["u", "v", "u", "v"]),
        **{f"user-item_affinity_{n}": np.array([0.0, n, 0.0, 2.0]) for n in range(3)},
        "item_context/item_id": np.array([1.0, 0.0, 2.0]),
        "item_context/item_feature_0": np.array([2.0, 1.0, 3.0]),
        "item_context/item_feature_1": np.array(["b", "a", "b"]),
        "item_context/item_feature_2": np.array(["x", "x", "x"]),
        "item_context/item_feature_3": np.array(["k", "l", "m"]),
    }


def numbered(arrays: Arrays) -> bytes:
    """A CSV as pandas writes it, the row's number before each row."""
    body = io.StringIO(newline="")
    writer = csv.writer(body, lineterminator="\n")
    writer.writerow(["", *arrays])
    rows = zip(*(column.tolist() for column in arrays.values()), strict=True)
    writer.writerows([n, *row] for n, row in enumerate(rows))
    return body.getvalue().encode()


def tables(arrays: Arrays) -> dict[str, bytes]:
    """The two files of the wheel, among others of the same names."""
    mark = "item_context/"
    items = {name[len(mark) :]: arrays[name] for name in arrays if name.startswith(mark)}
    log = {name: arrays[name] for name in arrays if not name.startswith(mark)}
    folder = "obp/dataset/obd"
    return {
        f"{folder}/bts/all/all.csv": b"another log",
        f"{folder}/random/all/all.csv": numbered(log),
        f"{folder}/random/all/item_context.csv": numbered(items),
    }


def wheel(files: dict[str, bytes]) -> bytes:
    """The least that pip takes for obp 0.4.1."""
    info = "obp-0.4.1.dist-info"
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: obp\nVersion: 0.4.1\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return body.getvalue()


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All that pip can see: a folder of wheels, and no network."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, np.ndarray]:
    """The small log, as if it were the one that the catalogue expects."""
    arrays = small()
    entry = catalogue.find(NAME)._replace(proof=proof.sha256(fingerprint(arrays)))
    monkeypatch.setitem(catalogue.DATASETS, NAME, entry)
    return arrays


def put(shelf: Path, files: dict[str, bytes]) -> None:
    (shelf / "obp-0.4.1-py3-none-any.whl").write_bytes(wheel(files))


def test_the_log_is_whole(filled: Path) -> None:
    assert datasets.status(NAME) == "cached"
    assert datasets.get(NAME) == filled / "open_bandit_small"
    log = datasets.load_log(NAME)
    types = {name: (column.shape, column.dtype.kind) for name, column in log._asdict().items()}
    assert types == {
        "items": ((80, 41), "f"),  # 1 + 12 + 21 + 7 columns, none of them constant
        "affinity": ((10_000, 80), "f"),
        "position": ((10_000,), "i"),
        "action": ((10_000,), "i"),
        "reward": ((10_000,), "f"),
        "propensity": ((10_000,), "f"),
        "keys": ((10_000,), "U"),
    }
    assert {column.dtype.itemsize for column in log[:-1]} == {4}
    assert all(column.flags.c_contiguous for column in log)
    assert np.unique(log.action).tolist() == list(range(80))
    assert np.unique(log.position).tolist() == [0, 1, 2]
    assert log.reward.sum() == 38  # as counted in the all.csv of obp 0.4.1
    assert np.all(log.propensity == np.float32(1 / 80))  # uniform among 80 items


def test_rows_are_those_of_the_source(filled: Path) -> None:
    log = datasets.load_log(NAME)
    raw = formats.read(filled / "open_bandit_small" / FILES[0])
    np.testing.assert_array_equal(log.action, raw["item_id"])  # the source is in time order
    np.testing.assert_array_equal(log.position + 1, raw["position"])
    np.testing.assert_array_equal(log.affinity[:, 7], raw["user-item_affinity_7"])


def test_items_are_standardised_and_one_hot(filled: Path) -> None:
    items = datasets.load_log(NAME).items
    np.testing.assert_allclose(items[:, 0].mean(), 0, atol=1e-6)
    np.testing.assert_allclose(items[:, 0].std(), 1, rtol=1e-6)
    for start, end in ((1, 13), (13, 34), (34, 41)):
        np.testing.assert_array_equal(items[:, start:end].sum(axis=1), 1)


def test_segments_are_large_enough_to_be_clients(filled: Path) -> None:
    log = datasets.load_log(NAME)
    names, counts = np.unique(log.keys, return_counts=True)
    assert sorted(counts.tolist()) == [143, 543, 1423, 1547, 1588, 2319, 2437]
    assert names[counts == 143].tolist() == ["other"]


def test_a_small_log_by_hand() -> None:
    log = open_bandit.decode(small())
    assert log.action.tolist() == [0, 1, 2, 2]
    assert log.position.tolist() == [0, 1, 0, 2]
    assert log.reward.tolist() == [0, 0, 1, 1]
    assert log.keys.tolist() == ["v", "u", "v", "u"]
    np.testing.assert_allclose(log.propensity, [0.25, 1, 1 / 3, 0.5], rtol=1e-7)
    np.testing.assert_array_equal(log.affinity, [[0, 1, 2], [0, 0, 0], [2, 2, 2], [0, 0, 0]])
    step = np.sqrt(1.5)  # 1, 2, 3 have the standard deviation sqrt(2 / 3)
    wanted = [[-step, 1, 0, 0, 1, 0], [0, 0, 1, 1, 0, 0], [step, 0, 1, 0, 0, 1]]
    np.testing.assert_allclose(log.items, wanted, rtol=1e-6, atol=1e-7)


def test_rare_values_are_pooled() -> None:
    values = np.repeat(["a", "b", "c", "d"], [95, 2, 1, 2])
    names, counts = np.unique(open_bandit.pooled(values), return_counts=True)
    assert dict(zip(names.tolist(), counts.tolist(), strict=True)) == {
        "a": 95,
        "b": 2,
        "d": 2,
        "other": 1,
    }


@pytest.mark.parametrize(
    ("column", "row", "value", "why"),
    [
        ("item_id", 0, 3, "action row 3 holds 3, wants an item from 0 to 2"),
        ("item_id", 1, -1, "action row 0 holds -1, wants"),
        ("item_id", 1, 2**32, "action row 0 holds 4294967296, wants"),
        ("propensity_score", 2, 0.0, r"propensity row 1 holds 0\.0, wants .* in \(0, 1\]"),
        ("propensity_score", 2, 1e-60, "propensity row 1 holds 1e-60, wants"),
        ("propensity_score", 3, 1.5, "propensity row 2 holds 1.5, wants"),
        ("propensity_score", 3, -0.5, "propensity row 2 holds -0.5, wants"),
        ("propensity_score", 3, np.nan, "propensity row 2 holds nan, wants"),
        ("click", 2, np.nan, "reward row 1 holds nan, wants a finite number"),
        ("click", 2, np.inf, "reward row 1 holds inf, wants"),
        ("position", 1, 4, "position row 0 holds 3, wants a place from 0 to 2"),
    ],
)
def test_rows_that_cannot_be_learnt_from_are_named(
    column: str, row: int, value: float, why: str
) -> None:
    arrays = small()
    arrays[column] = arrays[column].astype(np.asarray(value).dtype)
    arrays[column][row] = value
    with pytest.raises(BadData, match=f"log: {why}"):
        open_bandit.decode(arrays)


def test_items_must_be_numbered_without_gaps() -> None:
    arrays = small()
    arrays["item_context/item_id"] = np.array([1.0, 0.0, 3.0])
    with pytest.raises(BadData, match="numbered from 0 to 2"):
        open_bandit.decode(arrays)


def test_a_log_is_no_table_and_a_table_no_log(cache_folder: Path) -> None:
    with pytest.raises(BadParameter, match=r"open_bandit is a log, .*load_log\('open_bandit'\)"):
        datasets.load(NAME)
    with pytest.raises(BadParameter, match=r"elec2 is a table, not a log; load\('elec2'\)"):
        datasets.load_log("elec2")
    assert not cache_folder.exists()


@needs_pip
def test_a_small_wheel_is_fetched_once_and_then_read_from_the_cache(
    shelf: Path, known: Arrays, cache_folder: Path
) -> None:
    put(shelf, tables(known))
    assert datasets.status(NAME) == "missing"
    log = datasets.load_log(NAME)
    (shelf / "obp-0.4.1-py3-none-any.whl").unlink()
    assert datasets.status(NAME) == "cached"
    for again in (log, datasets.load_log(NAME)):
        for made, wanted in zip(again, open_bandit.decode(known), strict=True):
            np.testing.assert_array_equal(made, wanted)
    folder = cache_folder / "open_bandit_small"
    assert [path.name for path in cache_folder.iterdir()] == ["open_bandit_small"]
    assert {path.name for path in folder.iterdir()} == {*FILES, "PROVENANCE.txt"}
    assert "From PyPI obp 0.4.1" in (folder / "PROVENANCE.txt").read_text()


@needs_pip
def test_the_wheel_becomes_the_cached_files(
    filled: Path, shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = cache.read(catalogue.find(NAME))
    assert arrays is not None
    put(shelf, tables(arrays))
    monkeypatch.setenv("MAINSTEM_DATA", str(tmp_path / "cache"))
    folder = datasets.get(NAME)
    for file in FILES:
        made, wanted = (
            formats.read(folder / file),
            formats.read(filled / "open_bandit_small" / file),
        )
        assert list(made) == list(wanted)
        assert fingerprint(made) == fingerprint(wanted)
    packed = [(each / FILES[1]).read_bytes() for each in (folder, filled / "open_bandit_small")]
    assert gzip.decompress(packed[0]) == gzip.decompress(packed[1])


def refused(cache_folder: Path, why: str) -> None:
    """Fetching fails with one line that gives the reason, and the cache stays empty."""
    with pytest.raises(DataUnavailable, match=f"PyPI obp 0.4.1: {why}") as error:
        datasets.get(NAME)
    message = str(error.value)
    assert "\n" not in message
    name = "open_bandit_small"
    assert message.endswith(f"to a folder that holds {name}/{FILES[0]} and {name}/{FILES[1]}")
    assert list(cache_folder.iterdir()) == []


@needs_pip
def test_pip_finds_nothing(shelf: Path, cache_folder: Path) -> None:
    refused(cache_folder, "pip download obp==0.4.1 failed: No matching distribution found")


def test_pip_cannot_be_started(
    tmp_path: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    refused(cache_folder, "pip download obp==0.4.1 did not end: FileNotFoundError")


def test_pip_never_ends(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pypi, "TIMEOUT", 0.001)
    refused(cache_folder, "pip download obp==0.4.1 did not end: TimeoutExpired")


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("/usr/bin/python: No module named pip\n", "failed: /usr/bin/python: No module named pip"),
        ("ERROR: a\nERROR:  no   space\n\n[notice] a notice\n", "failed: no space"),
        ("", "failed: it output nothing"),
    ],
)
def test_the_last_line_of_pip_is_in_the_error(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch, output: str, why: str
) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", output)

    monkeypatch.setattr(subprocess, "run", run)
    refused(cache_folder, f"pip download obp==0.4.1 {why}")


def without(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: body for name, body in files.items() if "item_context" not in name}


def renamed(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: body.replace(b"click", b"clack") for name, body in files.items()}


def ragged(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: body + b"4,5\n" for name, body in files.items()}


def other(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: body.replace(b"0.25", b"0.26") for name, body in files.items()}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (without, "the wheel has no obp/dataset/obd/random/all/item_context.csv"),
        (renamed, "another format than expected .*click"),
        (ragged, "a table of 10 columns is empty or has rows of another length"),
        (other, "other data than expected"),
    ],
)
def test_another_wheel_is_refused(
    known: Arrays,
    cache_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[dict[str, bytes]], dict[str, bytes]],
    why: str,
) -> None:
    monkeypatch.setattr(pypi, "download", lambda _: wheel(change(tables(known))))
    refused(cache_folder, why)


def test_a_damaged_wheel_is_refused(
    known: Arrays, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = wheel(tables(known))
    monkeypatch.setattr(pypi, "download", lambda _: whole[: len(whole) // 2])
    refused(cache_folder, "the wheel is not a zip archive, or was cut short")
    at = whole.index(b"random/all/all.csv") + 40
    spoilt = whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]
    monkeypatch.setattr(pypi, "download", lambda _: spoilt)
    refused(cache_folder, "obp/dataset/obd/random/all/all.csv in the wheel is damaged")


def test_one_file_of_two_is_a_broken_cache(
    known: Arrays, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pypi, "download", lambda _: wheel(tables(known)))
    folder = datasets.get(NAME)
    (folder / FILES[1]).unlink()
    assert datasets.status(NAME) == "broken"
    with pytest.raises(DataUnavailable, match=r"item_context_.* cannot be read: .*delete the fold"):
        datasets.load_log(NAME)
    (folder / FILES[0]).unlink()
    assert datasets.status(NAME) == "missing"
    assert datasets.get(NAME) == folder
    assert datasets.status(NAME) == "cached"
