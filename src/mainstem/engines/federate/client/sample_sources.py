"""Sources of samples for `mainstem join`: a CSV file, a Parquet file, or a Python function."""

import csv
import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mainstem import plugins
from mainstem.errors import BadData, MainstemError

Pair = tuple[Any, Any]  # x, y


class Columns(NamedTuple):
    """How the columns of a file become x and y."""

    target: str | None = None  # y; None: the last column
    features: tuple[str, ...] | None = None  # x; None: all others
    words: bool = False  # x may be words, and an empty cell is no feature
    empty: str = "refuse"  # an empty cell; "skip": the row is left out; "zero": it is 0


ALL = Columns()


def is_function(source: str) -> bool:
    """Whether a source is module:function, and no file."""
    return ":" in source and Path(source).suffix not in (".csv", ".parquet")


def feed(source: str, after: int = 0, columns: Columns = ALL) -> Iterator[Pair]:
    """The samples of `source` after the first so many: rows of a file, or the pairs (x, y) of module:function."""
    path = Path(source)
    if path.suffix == ".csv":
        rows = _csv(path)
    elif path.suffix == ".parquet":
        rows = _parquet(path)
    elif is_function(source):
        return itertools.islice(_called(source), after, None)
    else:
        raise BadData(f"{source}: wants a .csv or .parquet file, or module:function")
    return itertools.islice(_pairs(source, rows, columns), after, None)


def _pairs(source: str, rows: Iterator[Mapping[str, Any]], columns: Columns) -> Iterator[Pair]:
    for number, row in enumerate(rows, start=1):
        target = list(row)[-1] if columns.target is None else columns.target
        names = [name for name in row if name != target]
        if columns.features is not None:
            names = [name for name in columns.features if name != target]
        for name in (target, *names):
            if name not in row:
                raise BadData(f"{source}: there is no column {name!r}, only {', '.join(row)}")
        given = {name: row[name] for name in names}
        if columns.words:
            x = {name: _label(each) for name, each in given.items() if not _is_empty(each)}
            yield x, _label(row[target])
        elif columns.empty == "skip" and any(map(_is_empty, (row[target], *given.values()))):
            continue
        else:
            zero = columns.empty == "zero"
            filled = {name: 0 if zero and _is_empty(it) else it for name, it in given.items()}
            x = {name: _number(source, number, name, each) for name, each in filled.items()}
            yield x, _label(row[target])


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or value != value  # the last: not a number


def _number(source: str, number: int, name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        hint = ": --empty skip or --empty zero takes such rows" if _is_empty(value) else ""
        raise BadData(f"{source}: row {number}, {name}: {value!r} is no number{hint}") from None


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
