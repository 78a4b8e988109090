"""Trace of a run: in each column one number per step and seed, or one for each client; in memory or in Parquet."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mainstem.errors import BadData, MainstemError

FORMAT = 4  # of trace files, see docs/formats/trace.md; 4: rows of blocks of steps
READABLE = ("1", "2", "3", "4")
SQUARED = ("collective_error",)  # columns of standard errors: the squares add up
OF_CLIENTS = ("loss", "correct", "squared_error", "reward")  # of which a report shows each client's
PER_CLIENT = "_per_client"  # in the name of a column with a number for each client
_FORMAT_KEY, _SEEDS_KEY = b"mainstem.trace", b"seeds"


class PerClient(NamedTuple):
    """A column with a number for each client."""

    of: str  # loss, or a metric
    every: int  # it has the steps n, 2 n, ...

    def kept(self, steps: np.ndarray) -> np.ndarray:
        """Which of these steps it has."""
        return steps % self.every == 0


def per_client(name: str) -> PerClient | None:
    """The column with this name, if it has a number for each client.

    >>> per_client("loss_per_client"), per_client("loss_per_client_every_10"), per_client("loss")
    (PerClient(of='loss', every=1), PerClient(of='loss', every=10), None)
    """
    found = re.fullmatch(rf"(\w+?){PER_CLIENT}(?:_every_([1-9]\d*))?", name, re.ASCII)
    return None if found is None else PerClient(found[1], int(found[2] or 1))


def pyarrow() -> Any:
    """pyarrow with its Parquet module; if it is missing, an error states how to install it."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError:
        raise MainstemError("runs are written with pyarrow: pip install 'mainstem[lab]'") from None
    return pa


class File(Mapping[str, np.ndarray]):
    """Columns [seeds, steps] or [seeds, steps it has, clients], each read from a Parquet file on access."""

    def __init__(self, path: Path):
        self._path = path
        self._file = pyarrow().parquet.ParquetFile(path)
        self._names = [n for n in self._file.schema_arrow.names if n not in ("t", "seed")]
        meta = self._file.schema_arrow.metadata or {}
        found = meta.get(_FORMAT_KEY, b"no").decode(errors="replace")
        if found not in READABLE:
            known = " and ".join(READABLE)
            raise BadData(f"it is of trace format {found}, this version reads {known}")
        self.seeds = int(meta.get(_SEEDS_KEY, b"1"))

    def __reduce__(self) -> tuple[Any, ...]:
        return File, (self._path,)

    @property
    def rows(self) -> int:
        """The number of rows: one for each step and seed."""
        return int(self._file.metadata.num_rows)

    @property
    def widths(self) -> dict[str, int | None]:
        """The numbers in a cell of each column: 1, or one for each client; None if there are no numbers in it, or
        not in the cells that should have them."""
        types, schema = pyarrow().types, self._file.schema_arrow
        found: dict[str, int | None] = {}
        for name in self._names:
            kind = schema.field(name).type
            width: int | None = 1
            if types.is_fixed_size_list(kind):
                kind, width = kind.value_type, kind.list_size
            elif types.is_list(kind):
                kind, width = kind.value_type, self._thinned_width(name)
            found[name] = width if types.is_floating(kind) or types.is_integer(kind) else None
        return found

    def _thinned_width(self, name: str) -> int | None:
        """The numbers in a cell of a column of every n-th step; None if other cells are empty than should be."""
        read = self._file.read(["t", name])
        lengths = read.column(name).combine_chunks().value_lengths().fill_null(0).to_numpy()
        column = per_client(name)
        there = False if column is None else column.kept(read.column("t").to_numpy())
        width = lengths.max(initial=0)
        return int(width) if (lengths == np.where(there, width, 0)).all() else None

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._names:
            raise KeyError(name)
        column = self._file.read([name]).column(name).combine_chunks()
        if pyarrow().types.is_fixed_size_list(column.type):
            width, values = column.type.list_size, column.values.to_numpy(zero_copy_only=False)
            return np.asarray(values).reshape(-1, self.seeds, width).swapaxes(0, 1)
        if pyarrow().types.is_list(column.type):
            cells = len(column) - column.null_count
            values = column.flatten().to_numpy(zero_copy_only=False)
            return np.asarray(values).reshape(cells // self.seeds, self.seeds, -1).swapaxes(0, 1)
        return np.asarray(column.to_numpy(zero_copy_only=False)).reshape(-1, self.seeds).T

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def table(columns: Mapping[str, np.ndarray], t: np.ndarray, seeds: list[int]) -> Any:
    """Columns [seeds, steps] or [seeds, steps, clients] of the steps `t` as an Arrow table, by step.

    A column of every n-th step has those steps only; the other cells are empty.
    """
    pa = pyarrow()
    data = {"t": np.repeat(t, len(seeds)), "seed": np.tile(np.asarray(seeds, np.int64), len(t))}
    for name, column in columns.items():
        each = per_client(name)
        if each is None or each.every == 1:
            data[name] = _cells(column)
        else:
            data[name] = _thinned(column, each.kept(data["t"]))
    made = pa.table(data)
    return made.replace_schema_metadata({_FORMAT_KEY: str(FORMAT), _SEEDS_KEY: str(len(seeds))})


def _cells(column: np.ndarray) -> Any:
    """The cells of a column, step after step and seed after seed."""
    if column.ndim == 2:
        return _in_order(column)
    pa = pyarrow()
    return pa.FixedSizeListArray.from_arrays(pa.array(_in_order(column)), column.shape[2])


def _thinned(column: np.ndarray, there: np.ndarray) -> Any:
    """The cells of a column that has only the rows that are `there`."""
    pa = pyarrow()
    ends = np.concatenate([[0], np.cumsum(there)]).astype(np.int32) * column.shape[2]
    offsets = pa.array(ends, mask=np.append(~there, False))
    return pa.ListArray.from_arrays(offsets, pa.array(_in_order(column)))


def _in_order(column: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(column.swapaxes(0, 1)).ravel()
