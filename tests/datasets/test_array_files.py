"""The three file formats of the cache."""

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest

from mainstem.datasets import formats
from mainstem.datasets.named_arrays import fingerprint
from mainstem.errors import BadData, MainstemError

NUMBERS = {"X": np.arange(6, dtype=np.uint8).reshape(2, 3), "names": np.array(["a", "b"])}
COLUMNS = {
    "Date": np.array(["2004-03-10", "2004-03-11"]),
    "T": np.array([13.6, 1 / 3]),
    "count": np.array([-200.0, 7.0]),
}
SERIES = {
    "AEP": np.array([1.5, np.nan], dtype=np.float32),
    "Datetime": np.array(["2018-08-03T00", "2018-08-03T01"], dtype="M8[s]"),
    "zone": np.array(["AEP", "Île"]),
}


@pytest.mark.parametrize(
    ("name", "arrays"), [("a.npz", NUMBERS), ("a.csv.gz", COLUMNS), ("a.parquet", SERIES)]
)
def test_what_is_written_is_read_back(
    tmp_path: Path, name: str, arrays: dict[str, np.ndarray]
) -> None:
    formats.write(tmp_path / name, arrays)
    back = formats.read(tmp_path / name)
    assert list(back) == list(arrays)
    assert fingerprint(back) == fingerprint(arrays)


@pytest.mark.parametrize(
    ("name", "arrays"), [("a.npz", NUMBERS), ("a.csv.gz", COLUMNS), ("a.parquet", SERIES)]
)
def test_damage_is_bad_data_in_one_line(
    tmp_path: Path, name: str, arrays: dict[str, np.ndarray]
) -> None:
    path = tmp_path / name
    formats.write(path, arrays)
    whole = path.read_bytes()
    for body in (whole[: len(whole) // 2], b"", b"<html>busy</html>"):
        path.write_bytes(body)
        with pytest.raises(BadData, match="cannot be read") as refused:
            formats.read(path)
        assert "\n" not in str(refused.value)


def test_a_csv_is_as_pandas_writes_it(tmp_path: Path) -> None:
    formats.write(tmp_path / "a.csv.gz", COLUMNS)
    text = gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).decode()
    assert text == ("Date,T,count\n2004-03-10,13.6,-200\n2004-03-11,0.3333333333333333,7\n")


def test_text_with_holes_is_refused(tmp_path: Path) -> None:
    formats.write(tmp_path / "a.parquet", {"zone": np.array(["AEP", None], dtype=object)})
    with pytest.raises(BadData, match="not only text"):
        formats.read(tmp_path / "a.parquet")


def test_ragged_and_empty_tables_are_refused() -> None:
    for rows in ([], [["1", "2"], ["3"]]):
        with pytest.raises(BadData, match="2 columns"):
            formats.columns(["a", "b"], rows)


def test_pickles_are_not_opened(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array([{}], dtype=object))
    with pytest.raises(BadData, match="cannot be read"):
        formats.read(tmp_path / "a.npz")


def test_unknown_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadData, match=r"must end in one of \.npz"):
        formats.read(tmp_path / "a.xlsx")


def test_without_pyarrow_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    formats.write(tmp_path / "a.parquet", SERIES)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MainstemError, match=r"pip install mainstem\[lab\]"):
        formats.read(tmp_path / "a.parquet")
