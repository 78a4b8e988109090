"""ARFF as OpenML writes it."""

import numpy as np
import pytest

from mainstem.datasets import arff
from mainstem.errors import BadData

ELECTRICITY = """% 1. Title: a sample
@RELATION electricity

@ATTRIBUTE date REAL
@ATTRIBUTE day {1,2,3,4,5,6,7}
@attribute 'nsw price' numeric
@ATTRIBUTE class {UP, DOWN}

@DATA
0,2,0.056443,UP
0.5,2,5.1e-2,DOWN
% a comment between rows

1,'3',-1,UP
"""


def test_numbers_and_nominal_values_come_apart() -> None:
    table = arff.parse(ELECTRICITY)
    assert table.names == ("date", "nsw price")
    np.testing.assert_array_equal(table.numbers, [[0, 0.056443], [0.5, 0.051], [1, -1]])
    assert table.nominal["day"].tolist() == ["2", "2", "3"]
    assert table.nominal["class"].tolist() == ["UP", "DOWN", "UP"]


def test_windows_line_ends() -> None:
    table = arff.parse(ELECTRICITY.replace("\n", "\r\n"))
    assert table.nominal["class"].tolist() == ["UP", "DOWN", "UP"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<html>busy</html>", "no @data"),
        (ELECTRICITY.split("@DATA")[0], "no @data"),
        (ELECTRICITY.split("0,2,")[0], "no @data"),
        (ELECTRICITY[:-5], "cannot be read"),
        (ELECTRICITY.replace("0.5", "?"), "cannot be read"),
        (ELECTRICITY.replace("0.5,2,5.1e-2,DOWN", "{0 1, 3 DOWN}"), "cannot be read"),
    ],
)
def test_other_files_are_refused(text: str, why: str) -> None:
    with pytest.raises(BadData, match=why):
        arff.parse(text)
