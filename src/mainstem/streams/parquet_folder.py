"""Folders of Parquet files, one file per client, read in place: each client's file in blocks, in order of time."""

import functools
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from mainstem.errors import BadData
from mainstem.streams.columns import DROP, Reader, column_of
from mainstem.streams.deal import has_gaps, last_step
from mainstem.streams.labels import Labels, classes_of
from mainstem.streams.parquet_files import FileInfo, columns_of, integers_of, unreadable
from mainstem.streams.prefetch import Prefetch
from mainstem.streams.spool import Asked

BLOCK = 32768  # rows of a file that are decoded at a time
PAGE = 1 << 20  # bytes of a page of a column, as pyarrow and most other writers make them
BUFFERS = 5 << 28  # bytes that the readers of all files may take
THREADS = 2  # that decode at a time
OPEN = 500  # files open at a time; many systems allow 1,024


def fits(files: Sequence[FileInfo], columns: Sequence[str]) -> bool:
    """Whether all files can be read at a time: a reader has a page of each column twice, compressed and not, and
    a decoded block."""
    total = 8 * BLOCK * (len(columns) + 1) * len(files)
    for file in files:
        present = file.metadata.schema.to_arrow_schema().names
        read = {column_of(name, present) for name in columns}
        if file.metadata.num_row_groups:
            group = file.metadata.row_group(0)
            for column in map(group.column, range(group.num_columns)):
                if column.path_in_schema in read:
                    total += 2 * min(PAGE, column.total_uncompressed_size)
    return len(files) <= OPEN and total <= BUFFERS


class ParquetFolder:
    """The rows of a folder, each file a client, read in place.

    The readers of all files stay open, each with a block of its rows, and the next steps are read ahead. A row
    elsewhere is found through the row group that contains it.
    """

    def __init__(self, owner: str, files: Sequence[FileInfo], asked: Asked, ends: str):
        self.names = [file.name for file in files]
        self.lengths = np.array([file.metadata.num_rows for file in files])
        for file in files:
            if not file.metadata.num_rows:
                raise BadData(f"{owner}: {file.path.name} has no rows: a client needs one")
        self._owner, self._files, self._asked, self._ends = owner, files, asked, ends
        self._columns = columns_of(owner, files, asked)
        found = self._distinct() if asked.classes is True else set()
        self.labels: Labels | None = None
        self.largest_class: int | None = None  # of the number of the class
        if asked.classes:
            self.labels = classes_of(owner, found, asked.classes)
            self.largest_class = (
                max(map(int, found)) if self.labels is None else len(self.labels) - 1
            )
        self._process = 0
        self._open()

    targets = None  # it would take all rows to read them

    def read(self, begin: int, end: int) -> tuple[np.ndarray, ...]:
        """Rows `begin` to `end` - 1 of each client; zeros where a silent one has no further rows."""
        if self._process != os.getpid():  # after a fork, the threads and readers are the parent's
            self._open()
        return self._prefetch(begin, end)

    def _open(self) -> None:
        self._process = os.getpid()
        given = self._owner, self._asked, self._columns, self.labels
        readers = [FileRows(file, *given) for file in self._files]
        silent, steps = has_gaps(self._ends, self.lengths), last_step(self._ends, self.lengths)
        self._prefetch = Prefetch(functools.partial(_rows, readers, silent), steps)

    def _distinct(self) -> set[Any]:
        """The labels that occur, from the footers if they have them, else from a pass over the column alone."""
        found: set[Any] = set()
        for file in self._files:
            least_and_most = integers_of(file, self._asked.target)
            found |= least_and_most
            if not least_and_most:
                rows = FileRows(file, self._owner, self._asked, [], None)
                for reader in rows.batches(0):
                    found |= reader.distinct(self._asked.target)
        return found


def _rows(
    readers: Sequence["FileRows"], silent: bool, begin: int, end: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows `begin` to `end` - 1 of each file, from its first row again, or zeros, where they have ended."""
    first, count = readers[0], len(readers)
    make = np.zeros if silent else np.empty
    # The steps are last: the columns are copied as they are, and transposed with the copy to the device.
    shown = make((count, first.width, end - begin), np.float32)
    hidden = make((count, end - begin), first.kind)

    def client(k: int) -> None:
        length, step = readers[k].length, begin
        while step < (min(end, length) if silent else end):
            row = step % length
            count = min(end - step, length - row)
            place = slice(step - begin, step - begin + count)
            readers[k].copy(row, shown[k, :, place], hidden[k, place])
            step += count

    with ThreadPoolExecutor(THREADS) as threads:
        for _ in threads.map(client, range(count)):
            pass
    return np.moveaxis(shown, -1, 0), hidden.T


class FileRows:
    """Reads the rows of a file in blocks: the block after the last one, or from any row on."""

    def __init__(
        self,
        file: FileInfo,
        owner: str,
        asked: Asked,
        columns: Sequence[str],
        labels: Labels | None,
    ):
        self._file, self._asked, self._columns, self._labels = file, asked, columns, labels
        self._owner = f"{owner}: {file.path.name}"
        groups = [file.metadata.row_group(n).num_rows for n in range(file.metadata.num_row_groups)]
        self._groups = np.concatenate([[0], np.cumsum(groups)]).astype(int)  # their first rows
        self.length = int(self._groups[-1])
        self.width, self.kind = len(columns), np.int32 if asked.classes else np.float32
        self._following: Iterator[Reader] | None = None
        self._block: Reader | None = None
        self._shown: list[np.ndarray] = []  # of the block
        self._hidden = np.empty(0)

    def copy(self, row: int, shown: np.ndarray, hidden: np.ndarray) -> None:
        """Copies the rows from `row` on to [features, rows] and [rows], as many as there is room for."""
        done = 0
        while done < len(hidden):
            block = self._containing(row + done)
            begin = row + done - block.before
            count = min(len(hidden) - done, block.end - row - done)
            rows, place = slice(begin, begin + count), slice(done, done + count)
            with np.errstate(over="ignore"):
                for to, column in zip(shown, self._shown, strict=True):
                    to[place] = column[rows]
            if not np.isfinite(shown[:, place]).all():
                block.matrix(self._columns)  # says where
            hidden[place] = self._hidden[rows]
            done += count

    def _target(self, rows: Reader) -> np.ndarray:
        if self._asked.classes:
            return rows.classes(self._asked.target, self._labels)
        return rows.matrix([self._asked.target], hint=DROP)[:, 0]

    def _containing(self, row: int) -> Reader:
        """The block that contains a row."""
        block, following = self._block, self._following
        if block is not None and block.before <= row < block.end:
            return block
        if following is None or block is None or row != block.end:
            following = self.batches(row)
        self._following = None  # stays so if the block cannot be read
        for each in following:
            if row < each.end:
                self._shown, self._hidden = each.columns(self._columns), self._target(each)
                self._block, self._following = each, following
                return each
        raise BadData(f"{self._owner} ends before row {row + 1} of {self.length}")

    def batches(self, row: int) -> Iterator[Reader]:
        """The blocks of the file from the row group on that contains a row."""
        import pyarrow as pa

        first = int(np.searchsorted(self._groups, row, side="right")) - 1
        before = int(self._groups[first])
        schema = self._file.metadata.schema.to_arrow_schema().names
        wanted = [column_of(name, schema) for name in (*self._columns, self._asked.target)]
        groups = range(first, len(self._groups) - 1)
        self._file.check(self._owner)
        try:
            for batch in self._file.batches(BLOCK, groups, sorted({*wanted})):
                self._file.check(self._owner)
                owners = np.broadcast_to(self._file.name, batch.num_rows)
                yield Reader(self._owner, batch, before, owners)
                before += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise unreadable(self._owner, error) from None
