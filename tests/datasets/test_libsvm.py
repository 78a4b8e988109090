"""LIBSVM's sparse rows."""

import bz2
import io
from typing import Any

import numpy as np
import pytest
import sklearn.datasets

from mainstem.datasets import libsvm
from mainstem.datasets.libsvm import Sparse
from mainstem.errors import BadData

ROWS = "7 1:-1 2:-0.631 3:1\n\n10 2:5e-3 \n"


def test_absent_features_are_zero() -> None:
    rows = libsvm.parse(ROWS, 3)
    assert rows.labels.tolist() == [7, 10]
    np.testing.assert_array_equal(rows.numbers, [[-1, -0.631, 1], [0, 0.005, 0]])


def test_rows_are_those_that_scikit_learn_reads() -> None:
    draw = np.random.default_rng(0)
    dense = np.where(
        draw.random((50, 7)) < 0.4,
        draw.normal(size=(50, 7)) * 10.0 ** draw.integers(-300, 300, 7),
        0,
    )
    labels = draw.integers(-3, 10, 50)
    file = io.BytesIO()
    sklearn.datasets.dump_svmlight_file(dense, labels, file, zero_based=False)
    ours = libsvm.parse(file.getvalue().decode(), 7)
    file.seek(0)
    theirs, their_labels = sklearn.datasets.load_svmlight_file(file, n_features=7, zero_based=False)
    np.testing.assert_array_equal(ours.numbers, theirs.toarray())
    np.testing.assert_array_equal(ours.labels, their_labels)


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

    source = libsvm.libsvm(("a.bz2", "b"), 1, convert, base_url=web.url)
    assert source.where == "LIBSVM a.bz2, b"
    assert source.read()["y"].tolist() == [1, 2]
    web.cut("/a.bz2", declared=False)
    with pytest.raises(BadData, match="damaged"):
        source.read()
