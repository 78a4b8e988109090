"""Off-policy values: sums over rows, intervals that hold, and refusals."""

import numpy as np
import pytest

from mainstem.errors import BadParameter, MainstemError
from mainstem.measure.policy import Worth, worth_of


def trace(sums, present):
    """The columns of a run with one seed: means over all clients, present or not."""
    return {"ips": sums.mean(axis=1)[None], "present": present.mean(axis=1)[None]}


def test_the_estimate_is_the_mean_over_the_rows_there_are():
    rng = np.random.default_rng(0)
    present = rng.uniform(size=(50, 4)) < 0.6
    values = np.where(present, rng.normal(size=(50, 4)), 0)
    found = worth_of(trace(values, present), "ips", clients=4)
    assert found.samples == present.sum()
    assert found.estimate == pytest.approx(values[present].mean())
    everybody = worth_of({"ips": values.mean(axis=1)[None]}, "ips", clients=4)
    assert everybody.samples == 200
    assert everybody.estimate == pytest.approx(values.mean())


def test_rows_of_one_step_may_be_dependent_and_the_interval_still_holds():
    """Clients that share their luck: 95 % of the intervals hold the truth, within 4.5 errors."""
    rng, covered, wide = np.random.default_rng(1), 0, []
    for _ in range(1000):
        common = rng.normal(size=(80, 1))
        found = worth_of(trace(0.3 + common * np.ones((80, 4)), np.ones((80, 4))), "ips", clients=4)
        covered += found.low <= 0.3 <= found.high
        wide.append(found.high - found.low)
    assert abs(covered / 1000 - 0.95) < 4.5 * np.sqrt(0.95 * 0.05 / 1000)
    np.testing.assert_allclose(np.mean(wide), 2 * 1.96 / np.sqrt(80), rtol=0.03)


def test_several_seeds_are_one_long_log():
    rng = np.random.default_rng(2)
    values = rng.normal(size=(3, 20))
    found = worth_of({"dr": values}, "dr", clients=2)
    assert found.estimate == pytest.approx(values.mean())
    assert found.samples == 120


def test_it_prints_what_it_found():
    assert str(Worth(0.5, 0.4, 0.6, 7)) == "0.50000 [0.40000, 0.60000] from 7 rows"


def test_refusals():
    with pytest.raises(
        BadParameter, match="policy_value: kind must be one of dr, ips, reward, got 'sum'"
    ):
        worth_of({}, "sum", clients=3)
    with pytest.raises(MainstemError, match=r"dr was not recorded: it wants problems\.replay"):
        worth_of({"reward": np.zeros((1, 3))}, "dr", clients=3)


def test_blocks_of_steps_have_the_same_mean():
    values, present = np.random.default_rng(0).normal(size=(2, 60, 4))
    present = (present > 0).astype(float)
    steps = trace(values * present, present)
    blocks = {name: each.reshape(1, 12, 5).mean(axis=2) for name, each in steps.items()}
    whole, found = worth_of(steps, "ips", clients=4), worth_of(blocks, "ips", clients=4, every=5)
    assert found.estimate == pytest.approx(whole.estimate)
    assert found.samples == whole.samples
    assert 0.5 < (found.high - found.low) / (whole.high - whole.low) < 2
