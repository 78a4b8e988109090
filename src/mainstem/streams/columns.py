"""Columns of a table as numbers: features, parts of dates, labels, keys. An error names column, row and client."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mainstem import check
from mainstem.errors import BadData
from mainstem.streams.labels import Labels, no_label

WORDS = ", not a number: words need classes=True as target, streams.hashed as features"
FILL = ": fill gaps with missing=parts.last_value(), or drop the row"
DROP = ": drop the row, a target has no gaps"
STRIP = 4096  # rows that are transposed at a time: they fit in the cache of a core
DATES = {  # name of a part of a date -> function of pyarrow.compute
    "year": "year",
    "month": "month",
    "day": "day",
    "weekday": "day_of_week",
    "yearday": "day_of_year",
    "hour": "hour",
    "minute": "minute",
    "second": "second",
}


def chosen(
    owner: str, schema: Any, target: str, key: str | None, features: Sequence[str] | None
) -> list[str]:
    """The feature columns; `time.hour` is the hour of the date column `time`."""
    present = list(schema.names)
    wanted = [target, *([key] if key else []), *(features or [])]
    missing = [name for name in wanted if name not in present and date_part(name)[0] not in present]
    if missing:
        parts = f" (parts of a date: {', '.join(DATES)})" if "." in missing[0] else ""
        raise BadData(
            f"{owner}: there is no column {missing[0]!r}, only {check.listed(missing[0], present)}{parts}"
        )
    if target in (features or []):
        raise BadData(
            f"{owner}: the target {target!r} is among the features, which are shown before"
        )
    repeated = [name for name in features or [] if list(features or []).count(name) > 1]
    if repeated:
        raise BadData(f"{owner}: features names {repeated[0]!r} more than once")
    twice = [name for name in present if present.count(name) > 1]
    if twice:
        raise BadData(f"{owner}: there is more than one column {twice[0]!r}")
    found = features or [name for name in present if name not in (target, key)]
    if not found:
        raise BadData(f"{owner}: no feature columns are left beside {target!r}")
    return list(found)


def date_part(name: str) -> tuple[str, str]:
    """(column, part) of a feature such as `time.hour`; two empty strings if it is not one."""
    column, _, part = name.rpartition(".")
    return (column, part) if part in DATES else ("", "")


def part_of(dates: Any, part: str) -> Any:
    """A part of each date of a column of pyarrow."""
    import pyarrow.compute as pc

    return getattr(pc, DATES[part])(dates)


def column_of(name: str, present: Sequence[str]) -> str:
    """The column that a feature is read from."""
    return name if name in present else date_part(name)[0]


def keys(owner: str, batch: Any, key: str | None, before: int) -> np.ndarray:
    """The client of each row, as text; `before` rows are in earlier batches."""
    if key is None:
        return np.full(batch.num_rows, "all")
    values = batch.column(key).to_pylist()
    for row, found in enumerate(values):
        if is_empty(found):
            raise BadData(
                f"{owner}: column {key!r} row {before + row + 1} is empty: whose row is it?"
            )
    return np.array([str(found) for found in values])


def is_empty(key: Any) -> bool:
    """Whether a key names nobody: None, NaN or an empty word."""
    return key is None or key != key or key == ""


class Reader(NamedTuple):
    """Reads the columns of a batch as numbers."""

    owner: str
    batch: Any  # a pyarrow record batch
    before: int  # rows in earlier batches
    clients: np.ndarray  # of each row

    @property
    def end(self) -> int:
        """The number of rows up to the end of this batch."""
        return self.before + int(self.batch.num_rows)

    def part(self, begin: int, end: int) -> "Reader":
        """The reader of some rows of the batch."""
        rows = self.batch.slice(begin, end - begin)
        return Reader(self.owner, rows, self.before + begin, self.clients[begin:end])

    def numbers(self, name: str, gaps: bool = False, hint: str = FILL) -> np.ndarray:
        """A column as finite floats; with `gaps`, NaN where it is missing, else `hint` says what to do there."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self._column(name)
        if pa.types.is_string(
            column.type
        ):  # because of some word: an empty cell is a gap all the same
            empty = pc.equal(pc.utf8_trim_whitespace(column), "")
            column = pc.if_else(empty, pa.scalar(None, column.type), column)
        try:
            values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        except pa.ArrowNotImplementedError:
            raise BadData(
                f"{self.owner}: column {name!r} is not numeric but {column.type}: {self._advice(name)}"
            ) from None
        except pa.ArrowInvalid:
            row = next(row for row in range(len(column)) if not _numeric(column.slice(row, 1)))
            raise self.refused(name, row, repr(column[row].as_py()), WORDS) from None
        fine = np.abs(values) <= np.finfo(np.float32).max
        wrong = np.flatnonzero(~(fine | np.isnan(values)) if gaps else ~fine)
        if wrong.size:
            held = values[wrong[0]]
            raise self.refused(name, int(wrong[0]), held, hint if np.isnan(held) else "")
        return np.asarray(values)

    def matrix(self, names: Sequence[str], gaps: bool = False, hint: str = FILL) -> np.ndarray:
        """Several columns as `numbers`, float32 [rows, columns]."""
        found = np.empty((self.batch.num_rows, len(names)), np.float32)
        columns = self.columns(names, gaps, hint)
        with np.errstate(over="ignore"):
            for begin in range(0, len(found), STRIP):
                rows = slice(begin, begin + STRIP)
                for position, column in enumerate(columns):
                    found[rows, position] = column[rows]
        if not np.isfinite(found).all():
            for name in names:
                self.numbers(name, gaps, hint)
        return found

    def columns(
        self, names: Sequence[str], gaps: bool = False, hint: str = FILL
    ) -> list[np.ndarray]:
        """Several columns as numbers of any type, not checked where the column's type is a number."""
        return [self._plain(name, gaps, hint) for name in names]

    def distinct(self, name: str) -> set[Any]:
        """The distinct labels of a column."""
        import pyarrow.compute as pc

        found = pc.unique(self.batch.column(name)).to_pylist()
        if any(is_empty(each) or no_label(each) for each in found):
            self.labels(name)
        return set(found)

    def classes(self, name: str, labels: Labels | None) -> np.ndarray:
        """The class of each label of a column, as `labels` has them; None: the labels are the classes."""
        import pyarrow as pa

        column = self.batch.column(name)
        if labels is None and pa.types.is_integer(column.type) and not column.null_count:
            return column.to_numpy(zero_copy_only=False).astype(np.int32)
        encoded = column.dictionary_encode()
        encoded = getattr(encoded, "combine_chunks", lambda: encoded)()
        found = encoded.dictionary.to_pylist()
        if encoded.null_count or any(is_empty(each) or no_label(each) for each in found):
            self.labels(name)
        unknown = [each for each in found if labels is not None and each not in labels]
        if unknown:
            row = column.to_pylist().index(unknown[0])
            listed = ", ".join(map(repr, labels or ()))
            raise self.refused(name, row, f"the label {unknown[0]!r}", f", classes has {listed}")
        classes = found if labels is None else [labels.index(each) for each in found]
        return np.asarray(classes, np.int32)[encoded.indices.to_numpy()]

    def labels(self, name: str) -> np.ndarray:
        """A column of labels: words, truth values or numbers."""
        values = self.batch.column(name).to_pylist()
        for row, found in enumerate(values):
            if is_empty(found):
                raise self.refused(name, row, "nothing", DROP)
            if no_label(found):
                raise self.refused(name, row, found, ", not an integer label or a word")
        return np.asarray(values)

    def refused(self, name: str, row: int, held: Any, why: str = "") -> BadData:
        """The error for a row of this batch."""
        place = f"column {name!r} row {self.before + row + 1} (client {self.clients[row]})"
        return BadData(f"{self.owner}: {place} holds {held}{why}")

    def _plain(self, name: str, gaps: bool, hint: str) -> np.ndarray:
        """A column as it is, if all of it are numbers; checked only if they are not."""
        import pyarrow as pa

        column = self._column(name)
        kind = column.type
        if column.null_count or not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
            return self.numbers(name, gaps, hint)
        return np.asarray(column.to_numpy(zero_copy_only=False))

    def _column(self, name: str) -> Any:
        import pyarrow as pa

        if name in self.batch.schema.names:
            return self.batch.column(name)
        of, part = date_part(name)
        column = self.batch.column(of)
        if not pa.types.is_temporal(column.type):
            raise BadData(
                f"{self.owner}: {name!r}: column {of!r} is not a date but {column.type}: convert it before, "
                "such as with pandas.to_datetime"
            )
        return part_of(column, part)

    def _advice(self, name: str) -> str:
        import pyarrow as pa

        if pa.types.is_temporal(self.batch.column(name).type):
            return f"name a part of it among the features, such as {name + '.hour'!r}"
        return "leave it out"


def _numeric(column: Any) -> bool:
    import pyarrow as pa

    try:
        column.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True
