"""The format of stored state: a header, JSON, and named arrays, with a checksum. Nothing is pickled.

Hubs and clients store their state in it. See docs/formats/wire.md.
"""

import functools
import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from mainstem.errors import BadData

_HEAD = struct.Struct("<4sII")  # mark, length of the JSON, checksum of all that follows
_MARK = b"msbn"
FORMAT = 4
KINDS = "biuf"  # dtype kinds that can be stored: bool, integers, floats


class Bundle(NamedTuple):
    """Plain values and arrays."""

    values: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]


def pack(values: Mapping[str, Any], arrays: Mapping[str, Any]) -> bytes:
    """Encodes values and arrays.

    >>> unpack(pack({"t": 3}, {"w": np.zeros(2)})).arrays["w"].tolist()
    [0.0, 0.0]
    """
    ordered = [np.asarray(array, order="C") for array in arrays.values()]
    shapes = _shapes(tuple(arrays), tuple((array.dtype, array.shape) for array in ordered))
    head = f'{{"format": {FORMAT}, "values": {json.dumps(values)}, "arrays": {shapes}}}'.encode()
    parts: list[Any] = [head, *(array.data for array in ordered)]
    check = 0
    for part in parts:
        check = zlib.crc32(part, check)
    return b"".join([_HEAD.pack(_MARK, len(head), check), *parts])


@functools.lru_cache(maxsize=16)
def _shapes(names: tuple[str, ...], kinds: tuple[tuple[np.dtype, tuple[int, ...]], ...]) -> str:
    """The JSON that names the arrays: the same for each state of a run."""
    listed = zip(names, kinds, strict=True)
    return json.dumps([[name, dtype.str, shape] for name, (dtype, shape) in listed])


def unpack(data: bytes, where: str = "bundle") -> Bundle:
    """Decodes what `pack` encoded; raises `BadData` for anything else."""
    if len(data) < _HEAD.size:
        raise BadData(f"{where}: is cut short")
    mark, length, check = _HEAD.unpack_from(data)
    rest = memoryview(data)[_HEAD.size :]
    if mark != _MARK or check != zlib.crc32(rest):
        raise BadData(f"{where}: is damaged, or something else")
    try:
        head = json.loads(bytes(rest[:length]))
        if head.get("format", 1) != FORMAT:
            raise BadData(
                f"{where}: is of format {head.get('format', 1)}, this version of mainstem reads format "
                f"{FORMAT}: finish the run with the version that started it"
            )
        arrays, place = {}, length
        for name, kind, shape in head["arrays"]:
            dtype = np.dtype(kind)
            if dtype.kind not in KINDS:
                raise BadData(f"{where}: {name} is of a kind that is not stored: {kind}")
            count = int(np.prod(shape, dtype=np.int64))
            arrays[name] = np.frombuffer(rest, dtype, count, place).reshape(shape)
            place += count * dtype.itemsize
        return Bundle(head["values"], arrays)
    except (ValueError, KeyError, TypeError) as error:
        raise BadData(f"{where}: is not a bundle: {error}") from None
