"""Spools: the numbers of a file in memory-mapped arrays, in which each client's rows are contiguous.

The rows are read twice: to count each client's rows, and to copy the numbers. Any step of any client can then be
read without loading the file into memory.
"""

import dataclasses
import mmap
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mainstem.parts.missing import Missing
from mainstem.parts.scaling import Scale, prepared
from mainstem.streams.columns import DROP, Reader, chosen, keys
from mainstem.streams.labels import Classes, Labels, classes_of


class Piece(NamedTuple):
    """Consecutive rows of a file."""

    owner: str  # who reads, for error messages: with the name of the file, if there are several
    batch: Any  # a pyarrow record batch
    before: int  # rows of the file in earlier pieces
    client: str | None = None  # whose rows they are; None: as the key column says


class Asked(NamedTuple):
    """What is read from the rows: the arguments of the stream."""

    target: str
    key: str | None
    features: Sequence[str] | None
    classes: Classes
    missing: Missing | None
    scale: Scale | None


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
    raw: np.ndarray  # the features before they were filled and scaled
    largest_class: int | None = None  # `targets` has them all

    def read(self, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows `begin` to `end` - 1 of each client, from its first row again where they have ended."""
        rows = self.begins + np.arange(begin, end)[:, None] % self.lengths
        found = np.asarray(self.features[rows]), np.asarray(self.target[rows])
        _release(self.features, self.target)
        return found

    def history(self, k: int, steps: int) -> np.ndarray:
        """The first rows of client k, as the file has them."""
        return np.array(self.raw[self.begins[k] :][: min(steps, self.lengths[k])])

    def targets(self) -> np.ndarray:
        """All targets, in the order of the file."""
        return self.in_order


def spooled(read: Callable[[], Iterator[Piece]], asked: Asked) -> Spool:
    """A new spool, of the rows that `read()` yields; it is called twice."""
    folder = tempfile.TemporaryDirectory(prefix="mainstem-spool-")
    try:
        spool = _filled(read, asked, Path(folder.name))
    except BaseException:
        folder.cleanup()
        raise
    weakref.finalize(spool, folder.cleanup)
    return spool


def _filled(read: Callable[[], Iterator[Piece]], asked: Asked, folder: Path) -> Spool:
    counts: dict[str, int] = {}
    columns: list[str] = []
    found: set[Any] = set()  # distinct labels
    owner = ""
    for piece in read():
        owner = piece.owner
        columns = columns or chosen(
            owner, piece.batch.schema, asked.target, asked.key, asked.features
        )
        names = _clients(piece, asked.key)
        if asked.classes:
            found |= Reader(owner, piece.batch, piece.before, names).distinct(asked.target)
        for name, size in zip(*np.unique(names, return_counts=True), strict=True):
            counts[name] = counts.get(name, 0) + int(size)
    labels = classes_of(owner, found, asked.classes) if asked.classes else None
    clients = sorted(counts)
    lengths = np.array([counts[name] for name in clients])
    begins = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    shown = _mapped(folder / "features", (int(lengths.sum()), len(columns)), np.float32)
    kind = np.int32 if asked.classes else np.float32
    hidden, ordered = (_mapped(folder / f, shown.shape[:1], kind) for f in ("target", "in_order"))
    following, row = begins.copy(), 0
    for piece in read():
        names = _clients(piece, asked.key)
        reader = Reader(piece.owner, piece.batch, piece.before, names)
        place = _places(np.searchsorted(clients, names), following)
        shown[place] = reader.matrix(columns, gaps=asked.missing is not None)
        values = (
            reader.classes(asked.target, labels)
            if asked.classes
            else reader.numbers(asked.target, hint=DROP)
        )
        hidden[place] = ordered[row : row + len(names)] = values
        row += len(names)
        _release(shown, hidden, ordered)
    raw = shown
    if asked.missing is not None or asked.scale is not None:
        shown = _prepared(folder / "prepared", asked, shown, begins, lengths)
    return Spool(shown, hidden, ordered, begins, lengths, clients, labels, raw)


def _clients(piece: Piece, key: str | None) -> np.ndarray:
    """The client of each row, as text."""
    if piece.client is None:
        return keys(piece.owner, piece.batch, key, piece.before)
    return np.full(piece.batch.num_rows, piece.client)


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
    path: Path, asked: Asked, shown: np.ndarray, begins: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """The features without gaps and scaled, client by client."""
    width = shown.shape[1] if asked.missing is None else asked.missing.width(shown.shape[1])
    found = _mapped(path, (len(shown), width), shown.dtype)
    for begin, length in zip(begins, lengths, strict=True):
        rows = slice(begin, begin + length)
        found[rows] = prepared(shown[rows], asked.missing, asked.scale)
        _release(shown, found)
    return found


def _mapped(path: Path, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.memmap(path, dtype=dtype, mode="w+", shape=shape)


def _release(*arrays: np.ndarray) -> None:
    """Gives the memory of mapped pages back to the system, which has them in its cache or on disk."""
    for array in arrays:
        mapped = getattr(array, "_mmap", None)
        if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
            mapped.madvise(mmap.MADV_DONTNEED)
