"""Named arrays, the form of every cached dataset, and a fingerprint of their content."""

import hashlib
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Arrays: TypeAlias = Mapping[str, Array]


def fingerprint(arrays: Arrays) -> str:
    """The SHA-256 of the arrays' content, independent of the file that they come from.

    A hash of the file would depend on the compressor: two gzips of one table differ in a time stamp. So names
    (sorted), types, shapes and values are hashed, with one representation for each value: little endian, C
    order, one NaN, no negative zero, text as UTF-8, times in seconds.

    >>> import numpy as np
    >>> fingerprint({"x": np.array([0.0])}) == fingerprint({"x": np.array([-0.0])})
    True
    >>> fingerprint({"x": np.array([0.0])}) == fingerprint({"y": np.array([0.0])})
    False
    """
    digest = hashlib.sha256()
    for name in sorted(arrays):
        kind, content = _canonical(arrays[name])
        digest.update(f"{name}\0{kind}\0{arrays[name].shape}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _canonical(array: Array) -> tuple[str, bytes | memoryview]:
    if array.dtype.kind == "U":
        return "text", "\n".join(array.ravel().tolist()).encode()
    if array.dtype.kind == "M":
        array = array.astype("<M8[s]")
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), array.dtype.type(np.nan), array) + array.dtype.type(0)
    array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return array.dtype.str, np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
