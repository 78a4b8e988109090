"""Trace of a run: in each column one number per step and seed, or one for each client; in memory or in Parquet."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mainstem.errors import BadData, MainstemError

FORMAT = 2  # of trace files, see docs/formats/trace.md; 2: columns with a number for each client
READABLE = ("1", "2")
PER_CLIENT = "_per_client"  # the end of the name of a column with a number for each client
_FORMAT_KEY, _SEEDS_KEY = b"mainstem.trace", b"seeds"


def pyarrow() -> Any:
    """pyarrow with its Parquet module; if it is missing, an error states how to install it."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError:
        raise MainstemError("runs are written with pyarrow: pip install 'mainstem[lab]'") from None
    return pa


class File(Mapping[str, np.ndarray]):
    """Columns [seeds, steps] or [seeds, steps, clients], each read from a Parquet file on access."""

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
        """The numbers in a cell of each column: 1, or one for each client; None if there are no numbers in it."""
        types, schema = pyarrow().types, self._file.schema_arrow
        found: dict[str, int | None] = {}
        for name in self._names:
            kind, width = schema.field(name).type, 1
            if types.is_fixed_size_list(kind):
                kind, width = kind.value_type, kind.list_size
            found[name] = width if types.is_floating(kind) or types.is_integer(kind) else None
        return found

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._names:
            raise KeyError(name)
        column = self._file.read([name]).column(name).combine_chunks()
        if pyarrow().types.is_fixed_size_list(column.type):
            width, values = column.type.list_size, column.values.to_numpy(zero_copy_only=False)
            return np.asarray(values).reshape(-1, self.seeds, width).swapaxes(0, 1)
        return np.asarray(column.to_numpy(zero_copy_only=False)).reshape(-1, self.seeds).T

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def table(columns: Mapping[str, np.ndarray], first: int, seeds: list[int]) -> Any:
    """Columns [seeds, steps] or [seeds, steps, clients] from step `first` on as an Arrow table, by step."""
    pa = pyarrow()
    steps = next(iter(columns.values())).shape[1]
    data = {
        "t": np.repeat(np.arange(first, first + steps), len(seeds)),
        "seed": np.tile(np.asarray(seeds, np.int64), steps),
        **{name: _cells(column) for name, column in columns.items()},
    }
    made = pa.table(data)
    return made.replace_schema_metadata({_FORMAT_KEY: str(FORMAT), _SEEDS_KEY: str(len(seeds))})


def _cells(column: np.ndarray) -> Any:
    """The cells of a column, step after step and seed after seed."""
    values = np.ascontiguousarray(column.swapaxes(0, 1)).ravel()
    if column.ndim == 2:
        return values
    pa = pyarrow()
    return pa.FixedSizeListArray.from_arrays(pa.array(values), column.shape[2])
