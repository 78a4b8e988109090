"""Fetch, parse, verify, cache: the complete path over HTTP, and every way in which it can fail."""

import gzip
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mainstem import datasets
from mainstem.datasets import catalogue, convert, decode, formats, proof
from mainstem.datasets.dataset import Dataset
from mainstem.datasets.fetch import fetch
from mainstem.datasets.libsvm import libsvm
from mainstem.datasets.named_arrays import fingerprint
from mainstem.datasets.openml import openml
from mainstem.datasets.uci import uci
from mainstem.errors import DataUnavailable

ARRAYS = {
    "X_train": np.array([[1, 20], [3, 40]], dtype=np.uint8),
    "y_train": np.array([5, 7], dtype=np.uint8),
    "X_test": np.array([[2, 30]], dtype=np.uint8),
    "y_test": np.array([5], dtype=np.uint8),
}
ZIP = "/9/toy+set.zip"


@pytest.fixture
def toy(web: Any, cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """A dataset of three rows in UCI's form, known to the catalogue under the name of toy."""
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        archive.writestr("toy.trn", "1 20 5\n3 40 7\n")
        archive.writestr("toy.tst", "2 30 5\n")
    web.serve(ZIP, body.getvalue())
    tables = convert.two_tables("toy.trn", "toy.tst", np.uint8)
    entry = Dataset(
        name="toy",
        file="toy.npz",
        task="classification",
        about="Three rows",
        licence="none",
        sources=(uci(9, "toy+set", tables, base_url=web.url),),
        proof=proof.sha256(fingerprint(ARRAYS)),
        decode=decode.two_parts,
    )
    monkeypatch.setitem(catalogue.DATASETS, "toy", entry)
    return entry


def known(entry: Dataset, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    monkeypatch.setitem(catalogue.DATASETS, entry.name, entry)
    return entry


def test_a_set_is_fetched_once_and_then_read_from_the_cache(
    toy: Dataset, web: Any, cache_folder: Path
) -> None:
    assert datasets.status("toy") == "missing"
    table = datasets.load("toy")
    assert datasets.status("toy") == "cached"
    web.bodies.clear()
    for again in (table, datasets.load("toy")):
        np.testing.assert_array_equal(again.features, [[0, 0], [1, 1], [0.5, 0.5]])
        assert again.target.tolist() == [0, 1, 0]
        assert (again.classes, again.held_out) == (2, 1)
    assert datasets.get("toy") == cache_folder / "toy"
    assert [path.name for path in cache_folder.iterdir()] == ["toy"]
    note = (cache_folder / "toy" / "PROVENANCE.txt").read_text()
    assert note == "Three rows. From UCI 9, converted by mainstem. Licence: none.\n"


def test_a_compressed_answer_is_unpacked(toy: Dataset, web: Any) -> None:
    web.serve(ZIP, gzip.compress(web.bodies[ZIP]))
    web.encoding[ZIP] = "gzip"
    assert fingerprint(fetch(toy)) == fingerprint(ARRAYS)


def refused(entry: Dataset, cache_folder: Path, why: str) -> str:
    """Fetching fails with one line that gives the reason, and the cache stays empty."""
    with pytest.raises(DataUnavailable, match=why) as error:
        datasets.get(entry.name)
    message = str(error.value)
    assert "\n" not in message
    assert message.endswith("or set MAINSTEM_DATA to a folder that holds toy/toy.npz")
    assert list(cache_folder.iterdir()) == []
    assert datasets.status(entry.name) == "missing"
    return message


def test_a_wrong_checksum(
    toy: Dataset, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = known(toy._replace(proof=proof.sha256("0" * 64)), monkeypatch)
    refused(
        entry, cache_folder, "UCI 9: other data than expected .sha256 .*, expected 000000000000"
    )


def test_a_body_that_is_cut_short(toy: Dataset, web: Any, cache_folder: Path) -> None:
    web.cut(ZIP)
    refused(toy, cache_folder, "toy.set.zip did not arrive: IncompleteRead")


def test_a_body_that_is_cut_short_unnoticed(toy: Dataset, web: Any, cache_folder: Path) -> None:
    web.cut(ZIP, declared=False)
    refused(toy, cache_folder, "not a zip archive, or was cut short")


def test_a_404(toy: Dataset, web: Any, cache_folder: Path) -> None:
    web.bodies.clear()
    refused(toy, cache_folder, "answered HTTP 404")


def test_nobody_answers(toy: Dataset, cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = uci(9, "toy+set", convert.letter, base_url="http://127.0.0.1:1")
    entry = known(toy._replace(sources=(closed,)), monkeypatch)
    refused(entry, cache_folder, "did not arrive: .*refused")


def test_a_format_that_has_changed(
    toy: Dataset, web: Any, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.serve("/9", f'{{"data_set_description": {{"url": "{web.url}/x"}}}}'.encode())
    web.serve("/x", b"@attribute a real\n@attribute class {u}\n@data\n1,u\n")
    entry = known(toy._replace(sources=(openml(9, convert.mnist, api=web.url),)), monkeypatch)
    refused(entry, cache_folder, "OpenML 9: another format than expected")


def test_the_next_source_steps_in(toy: Dataset, web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = libsvm(("toy",), 2, convert.sensorless_libsvm, base_url=web.url)
    known(toy._replace(sources=(absent, *toy.sources)), monkeypatch)
    assert len(datasets.load("toy").target) == 3


def test_all_failures_are_in_the_error(
    toy: Dataset, web: Any, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.bodies.clear()
    absent = libsvm(("toy",), 2, convert.sensorless_libsvm, base_url=web.url)
    entry = known(toy._replace(sources=(absent, *toy.sources)), monkeypatch)
    message = refused(entry, cache_folder, "404")
    assert "LIBSVM toy: " in message
    assert "UCI 9: " in message


def test_a_damaged_cache_is_refused_and_left_alone(
    toy: Dataset, cache_folder: Path, web: Any
) -> None:
    path = datasets.get("toy") / "toy.npz"
    for damage in (b"", path.read_bytes()[:-30], path.read_bytes() + b"x" * 99_999):
        path.write_bytes(damage)
        for use in (datasets.load, datasets.get):
            with pytest.raises(DataUnavailable, match=r"delete the folder .*toy and get it again"):
                use("toy")
        assert datasets.status("toy") == "broken"
        assert path.read_bytes() == damage


def test_other_arrays_in_the_cache_are_refused(toy: Dataset, cache_folder: Path) -> None:
    path = datasets.get("toy") / "toy.npz"
    formats.write(path, {**ARRAYS, "y_test": np.array([7], dtype=np.uint8)})
    with pytest.raises(DataUnavailable, match=r"sha256 .*, expected .*delete the folder"):
        datasets.load("toy")


def test_a_folder_without_the_file_is_filled(toy: Dataset, cache_folder: Path) -> None:
    (cache_folder / "toy").mkdir(parents=True)
    (cache_folder / "toy" / "notes.txt").write_text("mine")
    assert datasets.status("toy") == "missing"
    datasets.get("toy")
    assert datasets.status("toy") == "cached"
    assert (cache_folder / "toy" / "notes.txt").read_text() == "mine"


def test_a_cache_that_cannot_be_written_is_refused_before_the_download(
    toy: Dataset, web: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MAINSTEM_DATA", str(tmp_path / "file"))
    web.bodies.clear()
    with pytest.raises(DataUnavailable, match=r"cannot be written .*; set MAINSTEM_DATA to one"):
        datasets.get("toy")


def test_a_full_disk_leaves_nothing(
    toy: Dataset, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(formats, "write", full)
    with pytest.raises(DataUnavailable, match=r"could not be written .*No space left"):
        datasets.get("toy")
    assert list(cache_folder.iterdir()) == []
