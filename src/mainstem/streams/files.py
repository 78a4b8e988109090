"""Streams from CSV and Parquet files of any size: rows in time order, clients by a key column or by file.

The rows are copied to a spool on disk, client by client, or read in place from a folder that has a file for each
client. Any step of any client can be read without loading the files into memory.
"""

import abc
import functools
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mainstem.base import At, Sample, Sampler
from mainstem.errors import BadData, MainstemError
from mainstem.parts.missing import Missing
from mainstem.parts.scaling import Scale, seen
from mainstem.streams import parquet_files, parquet_folder
from mainstem.streams.deal import ENDS, SILENT, has_gaps, last_step
from mainstem.streams.hosted import Hosted
from mainstem.streams.labels import Classes, Labels, classes_field
from mainstem.streams.parquet_files import unreadable
from mainstem.streams.parquet_folder import ParquetFolder
from mainstem.streams.spool import Asked, Piece, Spool, spooled
from mainstem.value import one_of, part, static, value

BATCH = 65536  # rows of a Parquet file read at a time
BLOCK = 1 << 22  # bytes of a CSV file


@value
class passed(Sampler):
    """Sampler whose pieces are the rows themselves.

    >>> passed().sample(([1.0, 2.0], 3.0), None, None).hidden
    3.0
    """

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        return Sample(*piece)


class File(Hosted):
    """The rows of files; a copy of the stream reads them again."""

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
    def pieces(self) -> Iterator[Piece]:
        """The rows, in order."""

    def admit(self) -> None:
        _ = self.source

    @functools.cached_property
    def source(self) -> Spool | ParquetFolder:
        """Where the rows are read from."""
        owner = type(self).__name__
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise MainstemError(f"{owner}: needs pyarrow: pip install 'mainstem[lab]'") from None
        return self._opened(owner)

    def _opened(self, owner: str) -> Spool | ParquetFolder:
        if not Path(self.path).is_file():
            raise BadData(f"{owner}: there is no file {Path(self.path).absolute()}")
        spool = spooled(self._readable, self._asked)
        with Path(self.path).open("rb") as file:
            self._sealed(hashlib.file_digest(file, "sha256").hexdigest()[:16])
        return spool

    def _sealed(self, found: str) -> None:
        """Remembers the checksum of the content, or compares it with what it was."""
        if self.checksum not in (None, found):
            owner = type(self).__name__
            raise BadData(f"{owner}: {self.path} has changed since: its checksum is {found}")
        object.__setattr__(self, "checksum", found)

    @property
    def _asked(self) -> Asked:
        return Asked(self.target, self.key, self.features, self.classes, self.missing, self.scale)

    def _readable(self) -> Iterator[Piece]:
        import pyarrow as pa

        where, rows = f"{type(self).__name__}: {Path(self.path).name}", 0
        try:
            for piece in self.pieces():
                rows += piece.batch.num_rows
                yield piece
        except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
            raise unreadable(where, error) from None
        if not rows:
            raise BadData(f"{where}: the file has no rows")

    @property
    def clients(self) -> int:
        """The number of distinct keys, or of files; 1 for a file without a key column."""
        return len(self.source.names)

    def seen_by(self, k: int, steps: int) -> dict[str, np.ndarray] | None:
        if not isinstance(self.source, Spool):
            return None
        return seen(self.source.history(k, steps), self.missing, self.scale)

    @property
    def steps(self) -> int | None:
        """The number of steps; None: the rows are repeated without end."""
        return last_step(self.ends, self.source.lengths)

    @property
    def device(self) -> Sampler:
        return passed()

    def chunk(self, seed: int, first: int, last: int) -> Any:
        found, lengths = self.source.read(first - 1, last), self.source.lengths
        if not has_gaps(self.ends, lengths):
            return found
        return *found, (np.arange(first - 1, last)[:, None] < lengths).astype(np.int32)

    @property
    def names(self) -> tuple[str, ...] | None:
        """The key of each client, or the name of its file; None for one file without a key column."""
        alone = self.key is None and self.clients == 1
        return None if alone else tuple(map(str, self.source.names))

    @property
    def labels(self) -> Labels | None:
        """The label of each class, if it is not the number of the class."""
        return self.source.labels

    @property
    def targets(self) -> Any:
        """() -> all targets, in the order of the file; None for a folder that is read in place."""
        return self.source.targets

    @property
    def largest_class(self) -> int | None:
        """The largest class, if it is known without all targets."""
        return self.source.largest_class


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

    >>> import tempfile
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

    def pieces(self) -> Iterator[Piece]:
        return _counted(type(self).__name__, self._batches())

    def _batches(self) -> Iterator[Any]:
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
    """Rows of a Parquet file, or of a folder of them; the other arguments are those of `csv`.

    In a folder, the files `*.parquet` are in the order of their names. With a `key`, their rows are those of one
    file. Without one, each file is a client with the file's name, and its rows are read in place, in blocks ahead
    of the run: a row that cannot be used is refused when it is read. The rows are copied to a spool on disk
    where they cannot be read in place: with a `key`, because clients that are not mixed evenly would need queues
    without bound; with `missing` or `scale`, which go over a client's rows from the first one on; and where the
    files are too many to have a page of each column in memory (1.25 GB in all, 500 files). `checksum` is then that
    of the files' names, sizes and footers, which have the number of rows and the extremes of every column.

    >>> import tempfile, pyarrow, pyarrow.parquet
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
    checksum: str | None = static(default=None)  # of the files; computed if left out

    def pieces(self) -> Iterator[Piece]:
        owner, path = type(self).__name__, Path(self.path)
        if not path.is_dir():
            yield from _counted(owner, parquet_files.opened(owner, path).batches(BATCH))
            return
        for file in parquet_files.files_in(owner, path):
            where, client = f"{owner}: {file.path.name}", None if self.key else file.name
            try:
                yield from _counted(where, file.batches(BATCH), client)
            except OSError as error:
                raise unreadable(where, error) from None

    def _opened(self, owner: str) -> Spool | ParquetFolder:
        if not Path(self.path).is_dir():
            return super()._opened(owner)
        files = parquet_files.files_in(owner, Path(self.path))
        self._sealed(parquet_files.checksum(files))
        columns = parquet_files.columns_of(owner, files, self._asked)
        alone = self.key is None and self.missing is None and self.scale is None
        if alone and parquet_folder.fits(files, columns):
            return ParquetFolder(owner, files, self._asked, self.ends)
        return spooled(self._readable, self._asked)


def _counted(owner: str, batches: Iterator[Any], client: str | None = None) -> Iterator[Piece]:
    before = 0
    for batch in batches:
        yield Piece(owner, batch, before, client)
        before += batch.num_rows
