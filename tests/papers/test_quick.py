"""A few results in their quick size, so that every algorithm is touched: each comes out as recorded."""

import pytest

from mainstem import algorithms
from mainstem.papers import reproduce as papers

WITHOUT_DATA = {
    "fedomd-fig1-right": {"fedomd"},
    "fedsea-rates": {"fedsea"},
    "ofediq-planner": set(),
    "dynfedavg-fig1c": {"dynamic_fedavg"},
    "fedres-fig6": {"fedres_sgd", "fedres_erm", "fictitious_play"},
    "fedres-bandit": {"fedres_sgd", "independent", "central"},
}
WITH_DATA = {"ofediq-fig4-occupancy": {"fedogd", "ofedavg", "ofediq"}}


def as_recorded(name, folder):
    outcome = papers.reproduce(papers.catalogue()[name], "quick", folder=folder)
    changed = [each for each in outcome.claims if not each.as_recorded]
    assert not changed
    return {path.name.rpartition("-")[0] for path in (folder / "runs").glob("*")}


@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_comes_out_as_recorded(name, tmp_path):
    assert as_recorded(name, tmp_path) == WITHOUT_DATA[name]


@pytest.mark.parametrize("name", WITH_DATA)
def test_comes_out_as_recorded_on_real_data(name, tmp_path, filled):
    assert as_recorded(name, tmp_path) == WITH_DATA[name]


def test_every_algorithm_is_touched():
    touched = set().union(*WITHOUT_DATA.values(), *WITH_DATA.values())
    general = {getattr(algorithms, name).__annotations__["return"].__name__ for name in touched}
    assert touched | general == set(algorithms.__all__)
