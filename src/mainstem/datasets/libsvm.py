"""LIBSVM's collection: one sparse row per line, `label index:value index:value ...`."""

import bz2
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mainstem.datasets.named_arrays import Arrays
from mainstem.datasets.source import Source, download, text
from mainstem.errors import BadData

BASE_URL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass"


class Sparse(NamedTuple):
    """Rows in dense form, zeros included."""

    labels: NDArray[np.int64]
    numbers: NDArray[np.float64]


def libsvm(
    files: Sequence[str],
    features: int,
    convert: Callable[..., Arrays],
    *,
    base_url: str = BASE_URL,
) -> Source:
    """The source that parses each of the files and passes them to `convert` in order."""

    def read() -> Arrays:
        bodies = [_unpacked(name, download(f"{base_url}/{name}")) for name in files]
        return convert(*(parse(text(body), features) for body in bodies))

    return Source(f"LIBSVM {', '.join(files)}", read)


def parse(rows: str, features: int) -> Sparse:
    """Reads the rows; indices count from 1.

    >>> parse("2 1:0.5 3:-1\\n", 3).numbers
    array([[ 0.5,  0. , -1. ]])
    """
    lines = [line.split() for line in rows.splitlines() if line.strip()]
    numbers = np.zeros((len(lines), features))
    try:
        labels = np.array([int(float(line[0])) for line in lines], dtype=np.int64)
        for row, line in zip(numbers, lines, strict=True):
            _fill(row, line[1:])
    except (ValueError, IndexError) as error:
        raise BadData(f"not LIBSVM rows of {features} features: {error}") from error
    if not lines:
        raise BadData("a LIBSVM file without rows")
    return Sparse(labels, numbers)


def _fill(row: NDArray[np.float64], cells: Sequence[str]) -> None:
    if not cells:
        return
    pairs = [cell.split(":") for cell in cells]
    columns = [int(index) - 1 for index, _ in pairs]
    if min(columns) < 0:  # numpy would read it as the last column
        raise ValueError("indices count from 1")
    row[columns] = [float(value) for _, value in pairs]


def _unpacked(name: str, body: bytes) -> bytes:
    if not name.endswith(".bz2"):
        return body
    try:
        return bz2.decompress(body)
    except (OSError, ValueError) as error:
        raise BadData(f"{name} is damaged: {error}") from error
