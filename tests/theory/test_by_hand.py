"""Every theorem's number against the same number worked out by hand."""

import collections

import pytest

from mainstem import theory
from tests.theory.by_hand import CASES, Case


def total(case: Case) -> float:
    """The value of the function, whatever type it returns."""
    found = getattr(theory, case.function)(**case.constants)
    if isinstance(found, theory.Rate):
        return float(found.shape)
    return float(found.other if isinstance(found, theory.Comparison) else found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.function)
def test_as_by_hand(case):
    assert total(case) == pytest.approx(case.value, rel=1e-12, abs=1e-12), case.working


def test_at_least_three_sets_for_every_theorem():
    counted = collections.Counter(case.function for case in CASES)
    not_theorems = {"plan", "fedsea_shift", "rounding_variance", "ofediq_section_4_2_1"}
    not_theorems |= {*theory.PAPERS, *theory.STEPS, "fedres_exploration", "fedsea_period"}
    functions = {name for name in theory.__all__ if name.islower()} - not_theorems
    assert set(counted) == functions
    assert min(counted.values()) >= 3


if __name__ == "__main__":  # the table, both numbers side by side
    for case in CASES:
        given = ", ".join(f"{name}={value}" for name, value in case.constants.items())
        print(f"{case.function:34}{total(case):16.9g}{case.value:16.9g}   {given}")
