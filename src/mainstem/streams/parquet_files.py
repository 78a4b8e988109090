"""Parquet files: their footers, and what these say of columns, rows and changes."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mainstem.errors import BadData, first_line
from mainstem.streams.columns import chosen
from mainstem.streams.spool import Asked


class FileInfo(NamedTuple):
    """A Parquet file: its footer, and what tells that it has changed."""

    path: Path
    metadata: Any  # of pyarrow
    footer: bytes
    state: tuple[int, int]  # size and time of the last change

    @property
    def name(self) -> str:
        """The file's name without its ending: the name of the client."""
        return self.path.stem

    def batches(self, size: int, row_groups: Any = None, columns: Any = None) -> Iterator[Any]:
        """The rows as pyarrow record batches, with one page of each column in memory."""
        import pyarrow.parquet as pq

        file = pq.ParquetFile(
            self.path, metadata=self.metadata, pre_buffer=False, buffer_size=65536
        )
        yield from file.iter_batches(size, row_groups, columns, use_threads=False)

    def check(self, where: str) -> None:
        """Refuses a file that has changed since its footer was read."""
        try:
            state = _state(self.path)
        except FileNotFoundError:
            raise BadData(f"{where} is gone") from None
        if state != self.state:
            raise BadData(f"{where} has changed since the stream was made")


def files_in(owner: str, folder: Path) -> list[FileInfo]:
    """The Parquet files of a folder, in the order of their names; their footers are read."""
    paths = [path for path in folder.glob("*.parquet") if path.is_file()]
    if not paths:
        raise BadData(f"{owner}: there are no files *.parquet in the folder {folder.absolute()}")
    return [opened(owner, path) for path in sorted(paths, key=lambda path: path.stem)]


def opened(owner: str, path: Path) -> FileInfo:
    """A Parquet file, after its footer was read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        state = _state(path)
        metadata = pq.read_metadata(path)
        with path.open("rb") as file:
            file.seek(-8, os.SEEK_END)
            length = int.from_bytes(file.read(4), "little")
            file.seek(-8 - length, os.SEEK_END)
            return FileInfo(path, metadata, file.read(length), state)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(f"{owner}: {path.name}", error) from None


def unreadable(where: str, error: Exception) -> BadData:
    """The error for a file that cannot be read."""
    why = "its text is not UTF-8" if isinstance(error, UnicodeDecodeError) else first_line(error)
    return BadData(f"{where} cannot be read: {why}")


def checksum(files: Sequence[FileInfo]) -> str:
    """A hash of the files' names, sizes and footers, which have the counts, places and extremes of the columns."""
    found = hashlib.sha256()
    for file in files:
        found.update(f"{file.path.name}\0{file.state[0]}\0".encode())
        found.update(file.footer)
    return found.hexdigest()[:16]


def columns_of(owner: str, files: Sequence[FileInfo], asked: Asked) -> list[str]:
    """The feature columns, which all files must have."""
    found: list[str] = []
    for file in files:
        where, schema = f"{owner}: {file.path.name}", file.metadata.schema.to_arrow_schema()
        mine = chosen(where, schema, asked.target, asked.key, asked.features)
        found = found or mine
        for name in set(found) ^ set(mine):
            raise BadData(
                f"{where} and {files[0].path.name} have different columns: only one has {name!r}: "
                "name the features, or make the columns equal"
            )
    return found


def integers_of(file: FileInfo, name: str) -> set[Any]:
    """The least and the greatest of a column of integers from 0 on, as the footer has them; else nothing."""
    found: set[Any] = set()
    for n in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(n)
        each = next(
            column.statistics
            for column in map(group.column, range(group.num_columns))
            if column.path_in_schema == name
        )
        known = each is not None and each.has_min_max and each.null_count == 0
        if not known or type(each.min) is not int or each.min < 0:
            return set()
        found |= {each.min, each.max}
    return found


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns
