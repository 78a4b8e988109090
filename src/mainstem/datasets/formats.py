"""File formats of named arrays: npz, gzipped CSV or Parquet, selected by the file name's ending."""

import csv
import gzip
import io
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from mainstem.datasets.named_arrays import Array, Arrays
from mainstem.errors import BadData, MainstemError

_DAMAGE = (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error)


def read(path: Path) -> Arrays:
    """The arrays in `path`; raises `BadData` if the file is damaged."""
    reader, _ = _format(path)
    try:
        return reader(path)
    except _DAMAGE as error:
        raise BadData(f"{path} cannot be read: {_one_line(error)}") from error


def write(path: Path, arrays: Arrays) -> None:
    """Writes a file that `read` reads back to the same fingerprint."""
    _, writer = _format(path)
    writer(path, arrays)


def csv_rows(lines: Iterable[str], delimiter: str = ",") -> tuple[list[str], list[list[str]]]:
    """The header of a CSV table, and its non-empty rows."""
    header, *rows = csv.reader(lines, delimiter=delimiter)
    return header, [row for row in rows if row]


def columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, Array]:
    """A text table by column: numbers (float64) if every cell is a number, otherwise text.

    >>> columns(["at", "load"], [["18:00", "1.5"], ["19:00", "2"]])["load"]
    array([1.5, 2. ])
    """
    if not rows or any(len(row) != len(header) for row in rows):
        raise BadData(f"a table of {len(header)} columns is empty or has rows of another length")
    return {
        name: _typed(cells) for name, cells in zip(header, zip(*rows, strict=True), strict=True)
    }


def _typed(cells: Sequence[str]) -> Array:
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        return np.array(cells)


def _read_npz(path: Path) -> Arrays:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def _write_npz(path: Path, arrays: Arrays) -> None:
    named: dict[str, Any] = dict(arrays)
    np.savez_compressed(path, **named)


def _read_csv(path: Path) -> Arrays:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as text:
        return columns(*csv_rows(text))


def _write_csv(path: Path, arrays: Arrays) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(arrays)
    writer.writerows(zip(*map(_cells, arrays.values()), strict=True))
    path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def _cells(column: Array) -> list[str]:
    """The shortest text that parses back to the same float64; integral columns without a decimal point."""
    if column.dtype.kind == "f" and np.all(column == np.rint(column)):
        return [str(int(value)) for value in column]
    return [str(value) for value in column.tolist()]


def _read_parquet(path: Path) -> Arrays:
    table = _lab("pyarrow.parquet").read_table(path)
    return {name: _plain(table[name].to_numpy()) for name in table.column_names}


def _write_parquet(path: Path, arrays: Arrays) -> None:
    arrow = _lab("pyarrow")
    table = {
        name: arrow.array(_stamped(column), from_pandas=True) for name, column in arrays.items()
    }
    _lab("pyarrow.parquet").write_table(arrow.table(table), path)


def _plain(column: Array) -> Array:
    if column.dtype.kind == "M":
        return column.astype("M8[s]")
    if column.dtype.kind != "O":
        return column
    if not all(isinstance(value, str) for value in column):
        raise ValueError("a column holds neither numbers nor times, and not only text")
    return column.astype(np.str_)


def _stamped(column: Array) -> Array:
    return column.astype("M8[ms]") if column.dtype.kind == "M" else column


def _lab(module: str) -> Any:
    """Imports an optional dependency, only where a file needs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MainstemError(f"{module} is not installed: pip install mainstem[lab]") from error


_Format = tuple[Callable[[Path], Arrays], Callable[[Path, Arrays], None]]
_FORMATS: dict[str, _Format] = {
    ".npz": (_read_npz, _write_npz),
    ".csv.gz": (_read_csv, _write_csv),
    ".parquet": (_read_parquet, _write_parquet),
    ".paruqet": (_read_parquet, _write_parquet),  # this is the spelling in Kaggle's PJM archive
}


def _format(path: Path) -> _Format:
    for ending, pair in _FORMATS.items():
        if path.name.endswith(ending):
            return pair
    raise BadData(f"{path.name}: the name must end in one of {', '.join(_FORMATS)}")


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
