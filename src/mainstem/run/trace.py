"""Trace of a run: one number per step and seed in each column, in memory or in a Parquet file."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mainstem.errors import BadData, MainstemError

FORMAT = 1  # of trace files, see docs/formats/trace.md
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
    """Columns [seeds, steps], each read from a Parquet file on access."""

    def __init__(self, path: Path):
        self._path = path
        self._file = pyarrow().parquet.ParquetFile(path)
        self._names = [n for n in self._file.schema_arrow.names if n not in ("t", "seed")]
        meta = self._file.schema_arrow.metadata or {}
        found = meta.get(_FORMAT_KEY, b"no").decode(errors="replace")
        if found != str(FORMAT):
            raise BadData(f"it is of trace format {found}, this version reads format {FORMAT}")
        self.seeds = int(meta.get(_SEEDS_KEY, b"1"))

    def __reduce__(self) -> tuple[Any, ...]:
        return File, (self._path,)

    @property
    def rows(self) -> int:
        """The number of rows: one for each step and seed."""
        return int(self._file.metadata.num_rows)

    @property
    def numeric(self) -> dict[str, bool]:
        """Whether each column is numeric."""
        types, schema = pyarrow().types, self._file.schema_arrow
        kinds = {name: schema.field(name).type for name in self._names}
        return {n: types.is_floating(kind) or types.is_integer(kind) for n, kind in kinds.items()}

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._names:
            raise KeyError(name)
        column = self._file.read([name]).column(name).to_numpy()
        return np.asarray(column).reshape(-1, self.seeds).T

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def table(columns: Mapping[str, np.ndarray], first: int, seeds: list[int]) -> Any:
    """Columns [seeds, steps] from step `first` on as an Arrow table, ordered by step."""
    pa = pyarrow()
    steps = next(iter(columns.values())).shape[1]
    data = {
        "t": np.repeat(np.arange(first, first + steps), len(seeds)),
        "seed": np.tile(np.asarray(seeds, np.int64), steps),
        **{name: np.ascontiguousarray(column.T).ravel() for name, column in columns.items()},
    }
    made = pa.table(data)
    return made.replace_schema_metadata({_FORMAT_KEY: str(FORMAT), _SEEDS_KEY: str(len(seeds))})
