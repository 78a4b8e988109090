"""Source: a public address of a dataset, and how its bytes become the arrays that are cached."""

import gzip
import http.client
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from typing import NamedTuple

from mainstem.datasets.named_arrays import Arrays
from mainstem.errors import BadData, DataUnavailable

TIMEOUT = 60.0  # seconds without a byte, not for the entire body


class Source(NamedTuple):
    """One source of a dataset; `read` raises `DataUnavailable` or `BadData` on failure."""

    where: str
    read: Callable[[], Arrays]


def download(url: str, *, timeout: float = TIMEOUT) -> bytes:
    """The complete body at an http(s) address, or a one-line `DataUnavailable`.

    A truncated body raises too: http.client compares it with its declared length. If a server declares none,
    the fingerprint decides.
    """
    if not url.startswith(("http://", "https://")):
        raise DataUnavailable(f"{url} is not an http(s) address")
    headers = {"User-Agent": "mainstem", "Accept-Encoding": "gzip"}
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            body: bytes = response.read()
            packed = response.headers.get("Content-Encoding", "") == "gzip"
        return gzip.decompress(body) if packed else body
    except urllib.error.HTTPError as error:
        raise DataUnavailable(f"{url} answered HTTP {error.code}") from error
    except (OSError, http.client.HTTPException, EOFError, zlib.error) as error:
        raise DataUnavailable(f"{url} did not arrive: {_reason(error)}") from error


def text(body: bytes) -> str:
    """A body as UTF-8, with or without a byte-order mark."""
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadData(f"not a text file: {error}") from error


def _reason(error: Exception) -> str:
    text = error.reason if isinstance(error, urllib.error.URLError) else error
    return " ".join(str(text).split()) or type(error).__name__
