"""UCI repository: one zip archive per dataset, with text tables inside."""

import gzip
import io
import zipfile
import zlib
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from mainstem.datasets import unlzw
from mainstem.datasets.named_arrays import Array, Arrays
from mainstem.datasets.source import Source, download
from mainstem.errors import BadData

BASE_URL = "https://archive.ics.uci.edu/static/public"

Members: TypeAlias = Callable[[str], bytes]
"""Hands out an archive's member by name, decompressed."""


def uci(
    number: int, title: str, convert: Callable[[Members], Arrays], *, base_url: str = BASE_URL
) -> Source:
    """The source for the archive of that number: its members, converted to the cached arrays."""

    def read() -> Arrays:
        return convert(members(download(f"{base_url}/{number}/{title}.zip")))

    return Source(f"UCI {number}", read)


def members(body: bytes) -> Members:
    """Opens an archive; members are read by their name without folder, .gz or .Z."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(body))
    except zipfile.BadZipFile as error:
        raise BadData("UCI's answer is not a zip archive, or was cut short") from error

    def member(name: str) -> bytes:
        for stored in archive.namelist():
            for ending, unpack in _UNPACK.items():
                if stored.rsplit("/", 1)[-1] == name + ending:
                    return _opened(archive, stored, unpack)
        raise BadData(f"UCI's archive has no {name}, only {', '.join(archive.namelist())}")

    return member


_UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.decompress,
    ".Z": unlzw.decompress,
}


def _opened(archive: zipfile.ZipFile, stored: str, unpack: Callable[[bytes], bytes]) -> bytes:
    try:
        return unpack(archive.read(stored))
    except (zipfile.BadZipFile, OSError, EOFError, zlib.error) as error:
        raise BadData(f"{stored} in UCI's archive is damaged: {error}") from error


def matrix(body: bytes, dtype: DTypeLike, *, delimiter: str | None = None) -> Array:
    """A member that contains only rows of numbers, as an array."""
    if not body.strip():
        raise BadData("a table in UCI's archive is empty")
    try:
        read: Any = np.loadtxt(io.BytesIO(body), dtype=dtype, delimiter=delimiter, ndmin=2)
    except ValueError as error:
        raise BadData(f"a table in UCI's archive cannot be read: {error}") from error
    return np.asarray(read)
