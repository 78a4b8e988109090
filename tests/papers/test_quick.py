"""A few results in their quick size, so that every algorithm is touched: each comes out as recorded."""

import subprocess
import sys

import pytest

from mainstem import algorithms

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
    """As a user runs it, in a process of its own."""
    command = [sys.executable, "-m", "mainstem.cli", "reproduce", name, "--quick"]
    done = subprocess.run([*command, "--folder", str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return {path.name.rpartition("-")[0] for path in (folder / "runs").glob("*")}


@pytest.mark.slow
@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_comes_out_as_recorded(name, tmp_path):
    assert as_recorded(name, tmp_path) == WITHOUT_DATA[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_DATA)
def test_comes_out_as_recorded_on_real_data(name, tmp_path, filled):
    assert as_recorded(name, tmp_path) == WITH_DATA[name]


def test_every_algorithm_is_touched():
    touched = set().union(*WITHOUT_DATA.values(), *WITH_DATA.values())
    general = {getattr(algorithms, name).__annotations__["return"].__name__ for name in touched}
    others = {"guarded", "centred_clipping"}  # of none of the five papers
    assert touched | general | others == set(algorithms.__all__)
