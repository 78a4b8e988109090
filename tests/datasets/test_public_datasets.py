"""The public functions, without any data."""

import ast
import sys
from pathlib import Path

import numpy as np
import pytest

from mainstem import datasets
from mainstem.datasets import cache, catalogue, decode, formats, proof, table
from mainstem.datasets.named_arrays import Arrays, fingerprint
from mainstem.errors import BadParameter, DataUnavailable


@pytest.mark.parametrize("name", datasets.names())
def test_every_dataset_is_described(name: str) -> None:
    described = datasets.describe(name)
    assert described.name == name
    assert described.task in ("classification", "regression", "bandit")
    assert described.about
    assert described.licence
    assert described.sources


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(BadParameter, match="there is no 'mnits'; did you mean mnist"):
        datasets.load("mnits")
    with pytest.raises(BadParameter, match="known are mnist, usps"):
        datasets.status("zzz")


@pytest.mark.parametrize("name", datasets.names())
def test_an_empty_cache_has_nothing(cache_folder: Path, name: str) -> None:
    assert datasets.status(name) == "missing"
    assert not cache_folder.exists()


def test_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MAINSTEM_DATA", "~/data")
    assert cache.root() == tmp_path / "data"
    monkeypatch.setenv("MAINSTEM_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.root() == tmp_path / "xdg" / "mainstem"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.root() == tmp_path / ".cache" / "mainstem"


def test_without_pyarrow_parquet_is_unchecked(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cache_folder / "pjm_hourly").mkdir(parents=True)
    (cache_folder / "pjm_hourly" / "pjm_hourly.parquet").write_bytes(b"PAR1")
    assert datasets.status("pjm_hourly") == "broken"
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert datasets.status("pjm_hourly") == "unchecked"


def test_a_full_set_is_preferred_to_its_stand_in(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small: Arrays = {"X": np.array([[0.0], [1.0]], np.float32), "y": np.array([1, 2], np.uint8)}
    large: Arrays = {
        "X": np.array([[0.0], [1.0], [1.0]], np.float32),
        "y": np.array([1, 2, 2], np.uint8),
    }
    entry = catalogue.DATASETS["sensorless"]
    assert entry.stand_in is not None
    stand_in = entry.stand_in._replace(proof=proof.sha256(fingerprint(small)))
    entry = entry._replace(proof=proof.sha256(fingerprint(large)), stand_in=stand_in, sources=())
    monkeypatch.setitem(catalogue.DATASETS, "sensorless", entry)
    for made, arrays in ((stand_in, small), (entry, large)):
        cache.folder(made).mkdir(parents=True)
        formats.write(cache.folder(made) / made.file, arrays)
    assert datasets.status("sensorless") == "cached"
    assert len(datasets.load("sensorless").target) == 3
    (cache.folder(entry) / entry.file).unlink()
    assert datasets.status("sensorless") == "partial"
    with pytest.warns(UserWarning, match="sensorless is partial here"):
        assert len(datasets.load("sensorless").target) == 2
    with pytest.raises(DataUnavailable, match="sensorless is not available"):
        datasets.get("sensorless")


def test_scaling_leaves_unit_data_alone_and_survives_constants() -> None:
    already = np.array([[0.25, 0.5], [0.5, 0.75]], dtype=np.float32)
    np.testing.assert_array_equal(table.unit(already), already)
    np.testing.assert_array_equal(table.unit(np.array([[7, -1], [7, 3]])), [[0, 0], [0, 1]])


def test_a_row_is_dropped_only_for_what_is_used() -> None:
    arrays = {
        "a": np.array([1.0, -200.0, 3.0, 5.0]),
        "b": np.array([0.0, 1.0, 2.0, -200.0]),
        "unused": np.full(4, -200.0),
    }
    made = decode.regression("b", ["a"], missing=-200)(arrays)
    np.testing.assert_array_equal(made.features, [[0], [1]])
    np.testing.assert_array_equal(made.target, [0, 1])


def test_jax_is_never_imported_and_the_lab_only_where_needed() -> None:
    for path in Path(datasets.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [
                alias.name for alias in getattr(node, "names", []) if isinstance(node, ast.Import)
            ]
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            roots = {name.split(".")[0] for name in names}
            assert not roots & {"jax", "pandas", "pyarrow", "sklearn", "scipy"}, path.name
