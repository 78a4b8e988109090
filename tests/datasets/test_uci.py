"""UCI's zip archives."""

import gzip
import io
import zipfile
from collections.abc import Callable

import numpy as np
import pytest

from mainstem.datasets import uci
from mainstem.errors import BadData


def zipped(**files: bytes) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return body.getvalue()


def test_files_are_found_in_folders_and_unpacked(compress: Callable[..., bytes]) -> None:
    archive = {
        "Index": b"",
        "data/plain.csv": b"1,2\n",
        "packed.data.gz": gzip.compress(b"3 4\n"),
        "old.trn.Z": compress(b"5 6\n"),
    }
    read = uci.members(zipped(**archive))
    assert read("plain.csv") == b"1,2\n"
    assert read("packed.data") == b"3 4\n"
    assert read("old.trn") == b"5 6\n"
    with pytest.raises(BadData, match=r"no absent\.txt, only Index, data/plain\.csv"):
        read("absent.txt")


def test_a_damaged_file_is_refused() -> None:
    packed = gzip.compress(b"3 4\n" * 100)
    with pytest.raises(BadData, match=r"x\.gz in UCI's archive is damaged"):
        uci.members(zipped(**{"x.gz": packed[:-9]}))("x")


def test_what_is_no_archive_is_refused() -> None:
    whole = zipped(a=b"1" * 1000)
    for body in (b"<html>busy</html>", whole[: len(whole) // 2]):
        with pytest.raises(BadData, match="not a zip archive"):
            uci.members(body)


def test_tables_of_numbers() -> None:
    rows = uci.matrix(b" 47, 100,8\n  0, 89,2\n", np.int64, delimiter=",")
    np.testing.assert_array_equal(rows, [[47, 100, 8], [0, 89, 2]])
    assert uci.matrix(b"1 2 \n", np.int16).shape == (1, 2)
    for body in (b"\n \n", b"1 2\n3\n", b"1 x\n"):
        with pytest.raises(BadData, match="in UCI's archive"):
            uci.matrix(body, np.int64)
