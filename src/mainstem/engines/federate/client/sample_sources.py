"""Sources of samples for `mainstem join`: a CSV file, a Parquet file, or a Python function."""

import csv
import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mainstem import plugins
from mainstem.errors import BadData, MainstemError

Pair = tuple[Any, Any]  # x, y


def is_function(source: str) -> bool:
    """Whether a source is module:function, and no file."""
    return ":" in source and Path(source).suffix not in (".csv", ".parquet")


def feed(
    source: str, target: str | None = None, after: int = 0, words: bool = False
) -> Iterator[Pair]:
    """The samples of `source` after the first so many: rows of a file, or the pairs (x, y) of module:function.

    In a file the column `target` is y (the last, if none is named), and all others are x. With `words` they may
    be words, and an empty cell is no feature.
    """
    path = Path(source)
    if path.suffix == ".csv":
        rows = _csv(path)
    elif path.suffix == ".parquet":
        rows = _parquet(path)
    elif is_function(source):
        return itertools.islice(_called(source), after, None)
    else:
        raise BadData(f"{source}: wants a .csv or .parquet file, or module:function")
    return itertools.islice(_pairs(source, rows, target, words), after, None)


def _pairs(
    source: str, rows: Iterator[Mapping[str, Any]], target: str | None, words: bool
) -> Iterator[Pair]:
    for number, row in enumerate(rows, start=1):
        named = list(row)[-1] if target is None else target
        if named not in row:
            raise BadData(f"{source}: there is no column {named!r}, only {', '.join(row)}")
        given = {name: each for name, each in row.items() if name != named}
        if words:
            x = {name: _label(each) for name, each in given.items() if each not in ("", None)}
        else:
            x = {name: _number(source, number, name, each) for name, each in given.items()}
        yield x, _label(row[named])


def _number(source: str, number: int, name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise BadData(f"{source}: row {number}, {name}: {value!r} is no number") from None


def _label(value: Any) -> Any:
    """A whole number, a number, or the word itself."""
    if not isinstance(value, str):
        return value
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def _csv(path: Path) -> Iterator[Mapping[str, Any]]:
    with _opened(path).open(newline="") as file:
        rows = csv.DictReader(file)
        if rows.fieldnames and all(
            isinstance(_label(name), int | float) for name in rows.fieldnames
        ):
            raise BadData(f"{path}: the first line must name the columns, and has numbers")
        for number, row in enumerate(rows, start=1):
            if None in row or None in row.values():
                raise BadData(f"{path}: row {number} has not as many values as the header")
            yield row


def _parquet(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise MainstemError("a Parquet file needs pyarrow: pip install 'mainstem[lab]'") from None
    for batch in pq.ParquetFile(_opened(path)).iter_batches(4096):
        yield from batch.to_pylist()


def _opened(path: Path) -> Path:
    if not path.is_file():
        raise BadData(f"there is no file {path}")
    return path


def _called(source: str) -> Iterator[Pair]:
    try:
        function = plugins.imported(source)
    except ImportError as error:
        raise BadData(f"{source}: cannot be found: {error}") from None
    made = function()
    if not isinstance(made, Iterable):
        raise BadData(f"{source}: must yield pairs (x, y), gave {made!r}")
    yield from made
