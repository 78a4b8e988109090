"""Unix compress: our decoder against an encoder written from the format, and against gzip's."""

import shutil
import subprocess
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainstem.datasets import unlzw
from mainstem.errors import BadData

TEXT = b"".join(b"%d %d %d\n" % (n, n * n % 97, n % 7) for n in range(30_000))


def test_widths_from_9_to_16_bits_and_a_full_table(compress: Callable[..., bytes]) -> None:
    packed = compress(TEXT)
    assert len(packed) < len(TEXT)
    assert unlzw.decompress(packed) == TEXT


@pytest.mark.parametrize("entries", [258, 300, 511, 512, 513, 5000])
def test_cleared_tables(compress: Callable[..., bytes], entries: int) -> None:
    assert unlzw.decompress(compress(TEXT[:20_000], clear_after=entries)) == TEXT[:20_000]


@pytest.mark.skipif(shutil.which("gzip") is None, reason="gzip is not installed")
@pytest.mark.parametrize("entries", [0, 300, 512, 5000])
def test_gzip_reads_the_same_from_what_the_tests_encode(
    compress: Callable[..., bytes], entries: int
) -> None:
    packed = compress(TEXT, clear_after=entries)
    unpacked = subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=True).stdout
    assert unpacked == TEXT


def test_any_bytes_survive(compress: Callable[..., bytes]) -> None:
    @settings(max_examples=100, deadline=None)
    @given(st.binary(max_size=3000))
    def survives(text: bytes) -> None:
        assert unlzw.decompress(compress(text)) == text

    survives()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "begin with 1f 9d"),
        (b"PK\x03\x04", "begin with 1f 9d"),
        (b"\x1f\x9d\x88", "9 to 16 bits"),
        (b"\x1f\x9d\x90\xff\xff\xff\xff", "nothing before it defines"),
    ],
)
def test_other_files_are_refused(body: bytes, why: str) -> None:
    with pytest.raises(BadData, match=why):
        unlzw.decompress(body)
