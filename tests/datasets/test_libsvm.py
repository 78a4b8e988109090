"""LIBSVM's sparse rows."""

import bz2
from typing import Any

import numpy as np
import pytest

from mainstem.datasets import libsvm
from mainstem.datasets.libsvm import Sparse
from mainstem.errors import BadData

ROWS = "7 1:-1 2:-0.631 3:1\n\n10 2:5e-3 \n"


def test_absent_features_are_zero() -> None:
    rows = libsvm.parse(ROWS, 3)
    assert rows.labels.tolist() == [7, 10]
    np.testing.assert_array_equal(rows.numbers, [[-1, -0.631, 1], [0, 0.005, 0]])


@pytest.mark.parametrize(
    "text", ["", "<html>busy</html>", "1 0:5", "1 4:5", "1 2:", "1 2", "one 1:2", "1 1:2:3"]
)
def test_other_files_are_refused(text: str) -> None:
    with pytest.raises(BadData, match="LIBSVM"):
        libsvm.parse(text, 3)


def test_files_are_unpacked_and_handed_over_in_order(web: Any) -> None:
    web.serve("/a.bz2", bz2.compress(b"1 1:1\n"))
    web.serve("/b", b"2 1:2\n")

    def convert(first: Sparse, second: Sparse) -> dict[str, np.ndarray]:
        return {"y": np.concatenate([first.labels, second.labels])}

    source = libsvm.libsvm(("a.bz2", "b"), 1, convert, site=web.url)
    assert source.where == "LIBSVM a.bz2, b"
    assert source.read()["y"].tolist() == [1, 2]
    web.cut("/a.bz2", declared=False)
    with pytest.raises(BadData, match="damaged"):
        source.read()
