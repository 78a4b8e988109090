"""The faults of `make test-faults` can still be put in: their places are in the code."""

from pathlib import Path

import pytest

import mainstem
from tests.faults import FAULTS, ROOT, Fault


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.title)
def test_the_place_of_each_fault_is_there_once(fault: Fault) -> None:
    source = Path(mainstem.__file__).parent / fault.file
    assert source.read_text().count(fault.old) == 1
    assert all((ROOT / "tests" / name).exists() for name in fault.tests.split())
