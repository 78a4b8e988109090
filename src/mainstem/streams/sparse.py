"""Sparse rows: of a SciPy matrix, or of dicts with any keys by feature hashing. They are dense on the device."""

import functools
import hashlib
import math
import numbers
from collections.abc import Iterable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from mainstem.errors import BadData
from mainstem.value import Value, integer, leaf, value


@value
class sparse_rows(Value):
    """Rows of `width` numbers, most of them zero: the other ones of row n are `numbers[n]`, in `columns[n]`.

    Both are padded with zeros to the length of the longest row. Numbers of the same column add up.

    >>> rows = sparse_rows(np.array([[0, 2], [1, 0]]), np.array([[5.0, 6.0], [7.0, 0.0]]), width=3)
    >>> len(rows), rows.row(0).tolist()
    (2, [5.0, 0.0, 6.0])
    """

    columns: Any = leaf()
    numbers: Any = leaf()
    width: int = integer(least=1)

    def __len__(self) -> int:
        return len(self.columns)

    def row(self, n: Any) -> Any:
        """Row n as a dense vector."""
        columns, found = jnp.asarray(self.columns)[n], jnp.asarray(self.numbers)[n]
        return jnp.zeros(self.width, found.dtype).at[columns].add(found)


def from_scipy(matrix: Any) -> sparse_rows:
    """The rows of a sparse matrix of SciPy.

    >>> import scipy.sparse
    >>> from_scipy(scipy.sparse.eye(2, format="csc")).row(1).tolist()
    [0.0, 1.0]
    """
    table = matrix.tocsr()
    table.sum_duplicates()
    places = [
        table.indices[begin:end] for begin, end in zip(table.indptr, table.indptr[1:], strict=False)
    ]
    found = [
        table.data[begin:end] for begin, end in zip(table.indptr, table.indptr[1:], strict=False)
    ]
    return _padded(places, found, table.shape[1], table.data.dtype)


def from_dicts(owner: str, rows: Iterable[Mapping[Any, Any]], width: int) -> sparse_rows:
    """The rows of dicts, hashed to `width` columns."""
    places, found = [], []
    for n, row in enumerate(rows):
        try:
            columns, values = hashed(row, width)
        except BadData as error:
            raise BadData(f"{owner}: row {n}: {error}") from None
        places.append(columns)
        found.append(values)
    return _padded(places, found, width, np.dtype(np.float32))


def hashed(x: Mapping[Any, Any], width: int) -> tuple[list[int], list[float]]:
    """The columns and numbers of a dict with any keys, by signed feature hashing (Weinberger et al. 2009).

    A number is added under its key, a word as 1 under `key=word`; None is left out. The column and the sign depend
    on the key alone, so that all machines agree.

    >>> hashed({"heat": 2.5, "state": "on", "wind": None}, width=64)
    ([15, 63], [2.5, 1.0])
    """
    columns, values = [], []
    for key, given in x.items():
        if given is None:
            continue
        if isinstance(given, str):
            name, number = f"{key}={given}", 1.0
        elif isinstance(given, numbers.Real | np.bool_):
            name, number = str(key), float(given)
        else:
            raise BadData(f"{key} must be a number or a word, got {given!r}")
        if not math.isfinite(number):
            raise BadData(f"{key} must be finite, got {given!r}")
        code = _code(name)
        columns.append((code >> 1) % width)
        values.append(-number if code & 1 else number)
    return columns, values


def dense(x: Mapping[Any, Any], width: int) -> np.ndarray:
    """A dict as a hashed vector.

    >>> dense({"heat": 2.5}, width=4).tolist()
    [0.0, 0.0, 0.0, 2.5]
    """
    vector = np.zeros(width)
    for column, number in zip(*hashed(x, width), strict=True):
        vector[column] += number
    return vector


@functools.lru_cache(maxsize=2**16)
def _code(name: str) -> int:
    """63 bits for the column and one for the sign."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def _padded(places: list[Any], found: list[Any], width: int, dtype: np.dtype) -> sparse_rows:
    most = max(map(len, places), default=0) or 1
    columns, values = np.zeros((len(places), most), np.int32), np.zeros((len(places), most), dtype)
    for n, (where, what) in enumerate(zip(places, found, strict=True)):
        columns[n, : len(where)], values[n, : len(what)] = where, what
    return sparse_rows(columns, values, width)
