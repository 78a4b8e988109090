"""The trace of a run: one number a step and seed for each column, in memory or in a Parquet file."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mainstem.errors import MainstemError


def pyarrow() -> Any:
    """pyarrow with its Parquet part, or a refusal that says how to get it."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError:
        raise MainstemError("runs are written with pyarrow: pip install 'mainstem[lab]'") from None
    return pa


class File(Mapping[str, np.ndarray]):
    """Columns [seeds, steps] read from a Parquet file when they are asked for."""

    def __init__(self, path: Path):
        self._file = pyarrow().parquet.ParquetFile(path)
        self._names = [n for n in self._file.schema_arrow.names if n not in ("t", "seed")]
        meta = self._file.schema_arrow.metadata or {}
        self.seeds = int(meta.get(b"seeds", b"1"))

    @property
    def rows(self) -> int:
        """One for each step and seed."""
        return int(self._file.metadata.num_rows)

    @property
    def numeric(self) -> dict[str, bool]:
        """Whether each column holds numbers."""
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
    """Columns [seeds, steps] from step `first` on as an Arrow table, step after step."""
    pa = pyarrow()
    steps = next(iter(columns.values())).shape[1]
    data = {
        "t": np.repeat(np.arange(first, first + steps), len(seeds)),
        "seed": np.tile(np.asarray(seeds, np.int64), steps),
        **{name: np.ascontiguousarray(column.T).ravel() for name, column in columns.items()},
    }
    made = pa.table(data)
    return made.replace_schema_metadata({"seeds": str(len(seeds))})
