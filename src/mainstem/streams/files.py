"""Streams from CSV and Parquet files of any size: time order kept, clients by a key column.

One pass over the file spools the numbers into a memory-mapped copy, each client's rows together;
from there any step of any client can be read without holding the file in memory.
"""

import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mainstem.base import At, Sample, Stream
from mainstem.errors import BadData, MainstemError
from mainstem.spec import recorded

BATCH = 65536  # rows read at a time


class Spool(NamedTuple):
    """The numbers of a file, client after client."""

    features: np.ndarray  # float32 [rows, F], memory-mapped
    target: np.ndarray
    in_order: np.ndarray  # the target as the file has it
    begins: np.ndarray  # each client's first row
    lengths: np.ndarray
    names: list[str]


@recorded
def csv(
    path: str,
    target: str,
    key: str | None = None,
    features: Sequence[str] | None = None,
    classes: bool = False,
) -> Stream:
    """Rows of a CSV file with a header; `key` names the column that says whose row it is.

    `features` are all other columns unless named; with `classes` the target is an integer label.
    The stream is as long as the client with the fewest rows.
    """
    from_csv = _needs_pyarrow("csv")
    return _stream("csv", _file("csv", path), from_csv, target, key, features, classes)


@recorded
def parquet(
    path: str,
    target: str,
    key: str | None = None,
    features: Sequence[str] | None = None,
    classes: bool = False,
) -> Stream:
    """Rows of a Parquet file, as for `csv`."""
    from_parquet = _needs_pyarrow("parquet")
    return _stream("parquet", _file("parquet", path), from_parquet, target, key, features, classes)


def _file(owner: str, path: str) -> Path:
    found = Path(path)
    if not found.is_file():
        raise BadData(f"{owner}: there is no file {path}")
    return found


def _needs_pyarrow(owner: str) -> Callable[[Path], Iterator[Any]]:
    try:
        import pyarrow as pa
        import pyarrow.csv as pacsv
        import pyarrow.parquet as pq
    except ImportError:
        raise MainstemError(f"{owner}: needs pyarrow: pip install 'mainstem[lab]'") from None

    def batches(path: Path) -> Iterator[Any]:
        try:
            if owner == "parquet":
                yield from pq.ParquetFile(path).iter_batches(BATCH)
            else:
                yield from pacsv.open_csv(path, pacsv.ReadOptions(block_size=1 << 22))
        except pa.ArrowInvalid as error:
            raise BadData(
                f"{owner}: {path.name} cannot be read: {str(error).splitlines()[0]}"
            ) from None

    return batches


def _stream(
    owner: str,
    path: Path,
    batches: Callable[[Path], Iterator[Any]],
    target: str,
    key: str | None,
    features: Sequence[str] | None,
    classes: bool,
) -> Stream:
    folder = tempfile.TemporaryDirectory(prefix="mainstem-spool-")
    try:
        spool = _spool(
            owner, lambda: batches(path), Path(folder.name), target, key, features, classes
        )
    except BaseException:
        folder.cleanup()
        raise
    steps = int(spool.lengths.min())

    def chunk(seed: int, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        rows = np.arange(first - 1, last)[:, None] + spool.begins
        return np.asarray(spool.features[rows]), np.asarray(spool.target[rows])

    def sample(resident: Any, piece: Any, at: At) -> Sample:
        return Sample(*piece)

    weakref.finalize(chunk, folder.cleanup)
    return Stream(
        len(spool.names),
        steps,
        (),
        chunk,
        sample,
        rows=lambda: None,
        targets=lambda: spool.in_order,
    )


def _spool(
    owner: str,
    read: Callable[[], Iterator[Any]],
    folder: Path,
    target: str,
    key: str | None,
    features: Sequence[str] | None,
    classes: bool,
) -> Spool:
    counts: dict[str, int] = {}
    columns: list[str] = []
    row = 0
    for batch in read():
        columns = columns or _columns(owner, batch.schema.names, target, key, features)
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
    kind = np.int32 if classes else np.float32
    hidden, ordered = (_mapped(folder / f, shown.shape[:1], kind) for f in ("target", "in_order"))
    following, row = begins.copy(), 0
    for batch in read():
        owners = np.searchsorted(clients, _keys(owner, batch, key, row))
        order = np.argsort(owners, kind="stable")
        place = np.empty(len(owners), np.int64)
        for client, size in zip(*np.unique(owners, return_counts=True), strict=True):
            mine = order[np.searchsorted(owners[order], client) :][:size]
            place[mine] = following[client] + np.arange(size)
            following[client] += size
        for position, name in enumerate(columns):
            shown[place, position] = _numbers(owner, batch, name, row, owners, clients)
        values = _numbers(owner, batch, target, row, owners, clients, whole=classes)
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
    """A column as finite floats (whole for labels); else refused with row and client."""
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
