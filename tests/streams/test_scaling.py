"""Online scaling: River's numbers, from the past alone, for each client."""

import numpy as np
import pandas as pd
import pytest
from river.preprocessing import StandardScaler

import mainstem as ms
from mainstem.parts import last_value, running_mean, standardised
from mainstem.parts.scaling import following, prepared, seen

DRAW = np.random.default_rng(0)
ROWS = DRAW.normal(100.0, 3.0, size=(40, 2))
KEYS = DRAW.integers(0, 2, 40)


def by_river(rows):
    scaler, found = StandardScaler(), []
    for row in rows:
        named = dict(enumerate(row.tolist()))
        scaler.learn_one(named)
        found.append([scaler.transform_one(named)[n] for n in range(rows.shape[1])])
    return np.array(found)


def test_it_is_rivers_scaler():
    assert np.allclose(standardised().scaled(ROWS), by_river(ROWS), atol=1e-9)


def test_a_constant_feature_is_zero():
    rows = np.full((5, 1), 0.1)
    assert np.array_equal(standardised().scaled(rows), np.zeros((5, 1)))


def test_each_client_is_scaled_by_its_own_past():
    stream = ms.streams.arrays(ROWS, np.zeros(40), keys=KEYS, scale=standardised())
    for key in (0, 1):
        found = stream.features_prepared[key == KEYS]
        assert np.allclose(found, by_river(ROWS[key == KEYS]), atol=1e-9)


def test_nothing_comes_from_the_future():
    changed = ROWS.copy()
    changed[30:] += 50
    one, other = (standardised().scaled(rows)[:30] for rows in (ROWS, changed))
    assert np.array_equal(one, other)


def test_files_and_frames_do_the_same_and_leave_indicators_alone(tmp_path):
    rows = ROWS.copy()
    rows[3, 0] = np.nan
    table = pd.DataFrame(rows, columns=["a", "b"]).assign(site=KEYS, y=0.0)
    table.to_csv(tmp_path / "data.csv", index=False)
    given = {"target": "y", "key": "site", "scale": standardised()}
    given["missing"] = last_value(start=100.0, indicator=True)
    framed = ms.streams.frame(table, **given)
    filed = ms.streams.csv(tmp_path / "data.csv", **given)
    spool = filed.source.features
    mine = framed.features_prepared[KEYS == 0]
    assert np.allclose(spool[: len(mine)], mine, atol=1e-3)
    assert set(np.unique(framed.features_prepared[:, 2:])) == {0.0, 1.0}


@pytest.mark.parametrize("scale", [None, standardised()], ids=str)
@pytest.mark.parametrize(
    "missing",
    [None, last_value(start=7.0), running_mean(start=7.0), running_mean(indicator=True)],
    ids=str,
)
def test_the_next_row_needs_no_earlier_ones(missing, scale):
    rows = np.where((DRAW.uniform(size=ROWS.shape) < 0.4) & (missing is not None), np.nan, ROWS)
    rows[:6, 1] = 5.0  # constant at first
    whole = prepared(rows, missing, scale)
    for n in range(len(rows)):
        found = following(rows[n : n + 1], seen(rows[:n], missing, scale), missing, scale)
        assert np.allclose(found, whole[n : n + 1], atol=1e-9)
    several = following(rows[-3:], seen(rows[:-3], missing, scale), missing, scale)
    assert np.allclose(several[0], whole[-3], atol=1e-9)  # each is the next one


def test_rows_that_are_dealt_at_random_are_refused():
    with pytest.raises(ms.MainstemError, match="scale must be left out unless each client has its"):
        ms.streams.arrays(ROWS, np.zeros(40), clients=4, scale=standardised())
