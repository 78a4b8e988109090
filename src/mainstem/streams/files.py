"""Streams from CSV and Parquet files of any size: rows in time order, clients by a key column.

The file is read twice: to count each client's rows, and to copy the numbers into memory-mapped arrays (a
spool) in which each client's rows are contiguous. Any step of any client can then be read without loading
the file into memory.
"""

import abc
import dataclasses
import functools
import hashlib
import os
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mainstem.base import At, Sample, Sampler
from mainstem.errors import BadData, MainstemError
from mainstem.parts.missing import Missing
from mainstem.parts.scaling import Scale, prepared
from mainstem.streams.columns import DROP, Reader, chosen, keys
from mainstem.streams.deal import ENDS, SILENT, has_gaps, last_step
from mainstem.streams.hosted import Hosted
from mainstem.streams.labels import Classes, Labels, as_classes, classes_field, classes_of
from mainstem.value import one_of, part, static, value

BATCH = 65536  # rows of a Parquet file read at a time
BLOCK = 1 << 22  # bytes of a CSV file


@dataclasses.dataclass(frozen=True, eq=False)
class Spool:
    """The numbers of a file, client by client; its folder is deleted with the last reference to it."""

    features: np.ndarray  # float32 [rows, F], memory-mapped
    target: np.ndarray
    in_order: np.ndarray  # the target in the order of the file
    begins: np.ndarray  # each client's first row
    lengths: np.ndarray
    names: list[str]
    labels: Labels | None


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
    classes: Classes
    ends: str
    missing: Missing | None
    scale: Scale | None
    checksum: str | None

    @abc.abstractmethod
    def batches(self) -> Iterator[Any]:
        """The file's rows as pyarrow record batches, in order."""

    def admit(self) -> None:
        _ = self.spool
        with Path(self.path).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()[:16]
        if self.checksum not in (None, found):
            owner = type(self).__name__
            raise BadData(f"{owner}: {self.path} has changed since: its checksum is {found}")
        object.__setattr__(self, "checksum", found)

    @functools.cached_property
    def spool(self) -> Spool:
        """The numbers of the file, memory-mapped."""
        owner = type(self).__name__
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise MainstemError(f"{owner}: needs pyarrow: pip install 'mainstem[lab]'") from None
        if not Path(self.path).is_file():
            raise BadData(f"{owner}: there is no file {Path(self.path).absolute()}")
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

    @property
    def labels(self) -> Labels | None:
        """The label of each class, if it is not the number of the class."""
        return self.spool.labels

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

    `features` are all other columns by default; `time.hour` is the hour of a date column `time`, and year, month,
    day, weekday, yearday, minute and second are its other parts. With `classes` the target is a label, and
    `labels` has the label of each class, in sorted order or in that of `classes`. Missing features are refused,
    or filled by the part `missing`; the part `scale` scales features.
    When its rows have ended, a client gets no further samples; with `ends="repeat"` it begins again,
    with `ends="cut"` the stream ends for all. `checksum` is that of the file's content: a run on a file that has
    changed since is another run.

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
    classes: Classes = classes_field()
    ends: str = one_of(*ENDS, default=SILENT)
    missing: Missing | None = part(Missing, "last_value()", default=None)
    scale: Scale | None = part(Scale, "standardised()", default=None)
    checksum: str | None = static(default=None)  # of the file; computed if left out

    def batches(self) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.csv as pacsv

        options = pacsv.ReadOptions(block_size=BLOCK)
        with pacsv.open_csv(self.path, options) as reader:
            guessed = {field.name: field.type for field in reader.schema}
        # Types are guessed from the first block; a later one may have decimals where it has whole numbers.
        unsure = [
            name for name, it in guessed.items() if pa.types.is_integer(it) or it == pa.null()
        ]
        types = {name: pa.float64() for name in unsure}
        if self.key is not None:
            types[self.key] = pa.string()
        yield from pacsv.open_csv(
            self.path, options, convert_options=pacsv.ConvertOptions(column_types=types)
        )


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
    classes: Classes = classes_field()
    ends: str = one_of(*ENDS, default=SILENT)
    missing: Missing | None = part(Missing, "last_value()", default=None)
    scale: Scale | None = part(Scale, "standardised()", default=None)
    checksum: str | None = static(default=None)  # of the file; computed if left out

    def batches(self) -> Iterator[Any]:
        import pyarrow.parquet as pq

        yield from pq.ParquetFile(self.path).iter_batches(BATCH)


def _read(file: File) -> Iterator[Any]:
    import pyarrow as pa

    try:
        yield from file.batches()
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        name, why = Path(file.path).name, str(error).splitlines()[0]
        if isinstance(error, UnicodeDecodeError):
            why = "its text is not UTF-8"
        raise BadData(f"{type(file).__name__}: {name} cannot be read: {why}") from None


def _spool(file: File, folder: Path) -> Spool:
    owner, key, target = type(file).__name__, file.key, file.target
    counts: dict[str, int] = {}
    columns: list[str] = []
    found: set[Any] = set()  # distinct labels
    row = 0
    for batch in _read(file):
        columns = columns or chosen(owner, batch.schema, target, key, file.features)
        names = keys(owner, batch, key, row)
        if file.classes:
            found |= set(Reader(owner, batch, row, names).labels(target).tolist())
        row += batch.num_rows
        for name, size in zip(*np.unique(names, return_counts=True), strict=True):
            counts[name] = counts.get(name, 0) + int(size)
    if not counts:
        raise BadData(f"{owner}: the file has no rows")
    labels = classes_of(owner, found, file.classes) if file.classes else None
    clients = sorted(counts)
    lengths = np.array([counts[name] for name in clients])
    begins = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    shown = _mapped(folder / "features", (int(lengths.sum()), len(columns)), np.float32)
    kind = np.int32 if file.classes else np.float32
    hidden, ordered = (_mapped(folder / f, shown.shape[:1], kind) for f in ("target", "in_order"))
    following, row = begins.copy(), 0
    for batch in _read(file):
        names = keys(owner, batch, key, row)
        reader = Reader(owner, batch, row, names)
        place = _places(np.searchsorted(clients, names), following)
        for position, name in enumerate(columns):
            shown[place, position] = reader.numbers(name, gaps=file.missing is not None)
        values = (
            as_classes(reader.labels(target), labels)
            if file.classes
            else reader.numbers(target, hint=DROP)
        )
        hidden[place] = ordered[row : row + len(names)] = values
        row += len(names)
    if file.missing is not None or file.scale is not None:
        shown = _prepared(folder / "prepared", file, shown, begins, lengths)
    return Spool(shown, hidden, ordered, begins, lengths, clients, labels)


def _places(owners: np.ndarray, following: np.ndarray) -> np.ndarray:
    """The row of the spool for each row of a batch; moves each client's following row on."""
    order = np.argsort(owners, kind="stable")
    place = np.empty(len(owners), np.int64)
    for client, size in zip(*np.unique(owners, return_counts=True), strict=True):
        mine = order[np.searchsorted(owners[order], client) :][:size]
        place[mine] = following[client] + np.arange(size)
        following[client] += size
    return place


def _prepared(
    path: Path, file: File, shown: np.ndarray, begins: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """The features without gaps and scaled, client by client."""
    width = shown.shape[1] if file.missing is None else file.missing.width(shown.shape[1])
    found = _mapped(path, (len(shown), width), shown.dtype)
    for begin, length in zip(begins, lengths, strict=True):
        rows = slice(begin, begin + length)
        found[rows] = prepared(shown[rows], file.missing, file.scale)
    return found


def _mapped(path: Path, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.memmap(path, dtype=dtype, mode="w+", shape=shape)
