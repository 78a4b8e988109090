"""Streams from CSV and Parquet files of any size: rows in time order, clients by a key column.

The file is read twice: to count each client's rows, and to copy the numbers into memory-mapped arrays (a
spool) in which each client's rows are contiguous. Any step of any client can then be read without loading
the file into memory.
"""

import abc
import dataclasses
import functools
import os
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mainstem.base import At, Sample, Sampler
from mainstem.errors import BadData, MainstemError
from mainstem.streams.deal import ENDS, SILENT, has_gaps, last_step
from mainstem.streams.hosted import Hosted
from mainstem.value import flag, one_of, static, value

BATCH = 65536  # rows read at a time


@dataclasses.dataclass(frozen=True, eq=False)
class Spool:
    """The numbers of a file, client by client; its folder is deleted with the last reference to it."""

    features: np.ndarray  # float32 [rows, F], memory-mapped
    target: np.ndarray
    in_order: np.ndarray  # the target in the order of the file
    begins: np.ndarray  # each client's first row
    lengths: np.ndarray
    names: list[str]


@value
class passed(Sampler):
    """Sampler whose pieces are the rows themselves.

    >>> passed().sample(([1.0, 2.0], 3.0), None, None).hidden
    3.0
    """

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        return Sample(*piece)


class File(Hosted):
    """The rows of a file, copied to a spool once; a copy of the stream reads the file again."""

    path: str
    target: str
    key: str | None
    features: Sequence[str] | None
    classes: bool
    ends: str

    @abc.abstractmethod
    def batches(self) -> Iterator[Any]:
        """The file's rows as pyarrow record batches, in order."""

    def admit(self) -> None:
        _ = self.spool

    @functools.cached_property
    def spool(self) -> Spool:
        """The numbers of the file, memory-mapped."""
        owner = type(self).__name__
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise MainstemError(f"{owner}: needs pyarrow: pip install 'mainstem[lab]'") from None
        if not Path(self.path).is_file():
            raise BadData(f"{owner}: there is no file {self.path}")
        folder = tempfile.TemporaryDirectory(prefix="mainstem-spool-")
        try:
            spool = _spool(self, Path(folder.name))
        except BaseException:
            folder.cleanup()
            raise
        weakref.finalize(spool, folder.cleanup)
        return spool

    @property
    def clients(self) -> int:
        """The number of distinct keys; 1 without a key column."""
        return len(self.spool.names)

    @property
    def steps(self) -> int | None:
        """The number of steps; None: the rows are repeated without end."""
        return last_step(self.ends, self.spool.lengths)

    @property
    def device(self) -> Sampler:
        return passed()

    def chunk(self, seed: int, first: int, last: int) -> Any:
        spool, steps = self.spool, np.arange(first - 1, last)[:, None]
        rows = spool.begins + steps % spool.lengths
        found = np.asarray(spool.features[rows]), np.asarray(spool.target[rows])
        if not has_gaps(self.ends, spool.lengths):
            return found
        return *found, (steps < spool.lengths).astype(np.int32)

    def targets(self) -> np.ndarray:
        """All targets, in the order of the file."""
        return self.spool.in_order


def _path(owner: str, name: str, given: Any) -> str:
    return str(os.fspath(given))


def _listed(owner: str, name: str, given: Any) -> tuple[str, ...]:
    return tuple(given)


@value
class csv(File):
    r"""Rows of a CSV file with a header; the column `key` contains each row's client.

    `features` are all other columns by default; with `classes` the target is an integer label.
    When its rows have ended, a client gets no further samples; with `ends="repeat"` it begins again,
    with `ends="cut"` the stream ends for all.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "data.csv"
    ...     written = path.write_text("site,heat,load\na,1,2\nb,3,4\nb,5,6\n")
    ...     stream = csv(path, target="load", key="site")
    >>> stream.clients, stream.steps
    (2, 2)
    """

    path: str = static(checked=_path)
    target: str = static()
    key: str | None = static(default=None)
    features: Sequence[str] | None = static(default=None, checked=_listed)
    classes: bool = flag(default=False)
    ends: str = one_of(*ENDS, default=SILENT)

    def batches(self) -> Iterator[Any]:
        import pyarrow.csv as pacsv

        yield from pacsv.open_csv(self.path, pacsv.ReadOptions(block_size=1 << 22))


@value
class parquet(File):
    """Rows of a Parquet file; the arguments are those of `csv`.

    >>> import pyarrow, pyarrow.parquet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "data.parquet"
    ...     table = pyarrow.table({"site": ["a", "b"], "heat": [1.0, 3.0], "load": [2.0, 4.0]})
    ...     pyarrow.parquet.write_table(table, path)
    ...     stream = parquet(path, target="load", key="site")
    >>> stream.clients, stream.steps
    (2, 1)
    """

    path: str = static(checked=_path)
    target: str = static()
    key: str | None = static(default=None)
    features: Sequence[str] | None = static(default=None, checked=_listed)
    classes: bool = flag(default=False)
    ends: str = one_of(*ENDS, default=SILENT)

    def batches(self) -> Iterator[Any]:
        import pyarrow.parquet as pq

        yield from pq.ParquetFile(self.path).iter_batches(BATCH)


def _read(file: File) -> Iterator[Any]:
    import pyarrow as pa

    try:
        yield from file.batches()
    except pa.ArrowInvalid as error:
        name, why = Path(file.path).name, str(error).splitlines()[0]
        raise BadData(f"{type(file).__name__}: {name} cannot be read: {why}") from None


def _spool(file: File, folder: Path) -> Spool:
    owner, key, target = type(file).__name__, file.key, file.target
    counts: dict[str, int] = {}
    columns: list[str] = []
    row = 0
    for batch in _read(file):
        columns = columns or _columns(owner, batch.schema.names, target, key, file.features)
        names, sizes = np.unique(_keys(owner, batch, key, row), return_counts=True)
        row += batch.num_rows
        for name, size in zip(names, sizes, strict=True):
            counts[name] = counts.get(name, 0) + int(size)
    if not counts:
        raise BadData(f"{owner}: the file has no rows")
    clients = sorted(counts)
    lengths = np.array([counts[name] for name in clients])
    begins = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    shown = _mapped(folder / "features", (int(lengths.sum()), len(columns)), np.float32)
    kind = np.int32 if file.classes else np.float32
    hidden, ordered = (_mapped(folder / f, shown.shape[:1], kind) for f in ("target", "in_order"))
    following, row = begins.copy(), 0
    for batch in _read(file):
        owners = np.searchsorted(clients, _keys(owner, batch, key, row))
        order = np.argsort(owners, kind="stable")
        place = np.empty(len(owners), np.int64)
        for client, size in zip(*np.unique(owners, return_counts=True), strict=True):
            mine = order[np.searchsorted(owners[order], client) :][:size]
            place[mine] = following[client] + np.arange(size)
            following[client] += size
        for position, name in enumerate(columns):
            shown[place, position] = _numbers(owner, batch, name, row, owners, clients)
        values = _numbers(owner, batch, target, row, owners, clients, whole=file.classes)
        hidden[place] = ordered[row : row + len(owners)] = values
        row += len(owners)
    return Spool(shown, hidden, ordered, begins, lengths, clients)


def _mapped(path: Path, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.memmap(path, dtype=dtype, mode="w+", shape=shape)


def _columns(
    owner: str, present: list[str], target: str, key: str | None, features: Sequence[str] | None
) -> list[str]:
    wanted = [target, *([key] if key else []), *(features or [])]
    missing = [name for name in wanted if name not in present]
    if missing:
        raise BadData(f"{owner}: there is no column {missing[0]!r}, only {', '.join(present)}")
    twice = [name for name in present if present.count(name) > 1]
    if twice:
        raise BadData(f"{owner}: there is more than one column {twice[0]!r}")
    chosen = features or [name for name in present if name not in (target, key)]
    if not chosen:
        raise BadData(f"{owner}: no feature columns are left beside {target!r}")
    return list(chosen)


def _keys(owner: str, batch: Any, key: str | None, before: int) -> np.ndarray:
    if key is None:
        return np.full(batch.num_rows, "all")
    values = batch.column(key).to_pylist()
    if None in values or "" in values:
        row = next(i for i, value in enumerate(values) if value in (None, ""))
        raise BadData(f"{owner}: column {key!r} row {before + row + 1} is empty: whose row is it?")
    return np.array([str(value) for value in values])


def _numbers(
    owner: str,
    batch: Any,
    name: str,
    before: int,
    owners: np.ndarray,
    clients: list[str],
    whole: bool = False,
) -> np.ndarray:
    """A column as finite floats (integers for labels); an error names the row and the client."""
    import pyarrow as pa

    column = batch.column(name)

    def refused(row: int, held: Any, why: str = "") -> BadData:
        whose = clients[owners[row]]
        return BadData(
            f"{owner}: column {name!r} row {before + row + 1} (client {whose}) holds {held}{why}"
        )

    try:
        values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except pa.ArrowNotImplementedError:
        raise BadData(
            f"{owner}: column {name!r} is not numeric but {column.type}: leave it out"
        ) from None
    except pa.ArrowInvalid:
        row = next(row for row in range(len(column)) if not _numeric(column.slice(row, 1)))
        raise refused(row, repr(column[row].as_py()), ", not a number") from None
    wrong = np.flatnonzero(~(np.abs(values) <= np.finfo(np.float32).max))
    if wrong.size:
        raise refused(int(wrong[0]), values[wrong[0]])
    broken = np.flatnonzero((values != np.floor(values)) & whole)
    if broken.size:
        raise refused(int(broken[0]), values[broken[0]], ", not an integer label")
    return np.asarray(values)


def _numeric(column: Any) -> bool:
    import pyarrow as pa

    try:
        column.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True
