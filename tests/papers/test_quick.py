"""A few results in their quick size, so that every algorithm is touched: each comes out as recorded."""

import pytest

from mainstem import algorithms
from mainstem.papers import reproduce as papers

WITHOUT_DATA = (
    "fedomd-fig1-right",
    "fedsea-rates",
    "ofediq-planner",
    "dynfedavg-fig1c",
    "fedres-fig6",
    "fedres-bandit",
)
WITH_DATA = ("ofediq-fig4-occupancy",)


def as_recorded(name, folder):
    outcome = papers.reproduce(papers.catalogue()[name], "quick", folder=folder)
    changed = [each for each in outcome.claims if not each.as_recorded]
    assert not changed
    return {path.name.rpartition("-")[0] for path in (folder / "runs").glob("*")}


@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_comes_out_as_recorded(name, tmp_path):
    used = as_recorded(name, tmp_path)
    assert used <= set(algorithms.__all__)


@pytest.mark.parametrize("name", WITH_DATA)
def test_comes_out_as_recorded_on_real_data(name, tmp_path, filled):
    assert {"fedogd", "ofedavg", "ofediq"} <= as_recorded(name, tmp_path)
