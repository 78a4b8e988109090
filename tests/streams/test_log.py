"""A recommender's log: segments are clients, in time, until they have no more."""

import numpy as np
import pytest

import mainstem as ms
from mainstem import datasets, problems
from mainstem.datasets.decision_log import logged
from mainstem.streams import log
from tests.streams.replayed import replayed

A, F = 3, 2
KEYS = np.array([*"babcab"])
ROWS = {"a": [1, 4], "b": [0, 2, 5], "c": [3]}  # of each segment, as they came


@pytest.fixture
def table(monkeypatch):
    rng = np.random.default_rng(0)
    made = logged(
        items=np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]),
        affinity=rng.normal(size=(6, A)),
        position=np.array([0, 2, 1, 1, 0, 2]),
        action=np.array([2, 0, 1, 1, 2, 0]),
        reward=np.arange(6.0),
        propensity=rng.uniform(0.2, 1, 6),
        keys=KEYS,
    )
    monkeypatch.setattr(datasets, "load_log", lambda name: made)
    return made


def test_segments_are_clients_and_rows_come_in_time_order_until_they_end(table):
    stream = log("anything")
    assert (stream.clients, stream.steps) == (3, 3)  # as long as the largest segment
    assert stream.names == ("a", "b", "c")
    got = replayed(stream, 3)
    for k, rows in enumerate(ROWS.values()):
        np.testing.assert_array_equal(got.count[:, k], np.arange(3) < len(rows))
        mine = [x[: len(rows), k] for x in got.hidden]
        for found, wanted in zip(mine, (table.action, table.reward, table.propensity), strict=True):
            np.testing.assert_array_equal(found, wanted[rows])


def test_a_context_is_the_item_the_users_affinity_and_the_place_on_the_page(table):
    got = replayed(log("anything"), 3)
    for k, rows in enumerate(ROWS.values()):
        for t, row in enumerate(rows):
            x, local = got.shown[0][t, k], got.shown[1][t, k]
            np.testing.assert_array_equal(x[:, :F], table.items)
            np.testing.assert_array_equal(x[:, F], table.affinity[row])
            np.testing.assert_array_equal(
                x[:, F + 1 :], np.tile(np.eye(3)[table.position[row]], (A, 1))
            )
            np.testing.assert_array_equal(local, table.items)


def test_rows_do_not_depend_on_the_cut_or_the_seed(table):
    deal = log("anything").dealt
    np.testing.assert_array_equal(deal.rows(0, 2, 3), deal.rows(7, 1, 3)[1:])
    np.testing.assert_array_equal(deal.rows(0, 1, 3), [[1, 0, 3], [4, 2, -1], [-1, 5, -1]])


def test_a_policy_is_judged_on_every_row_once(table):
    """A model that hardly changes takes the first item, worth 1 to it, and the others 0: by hand."""
    start = np.zeros(F + 4), np.array([1.0, 0.0])
    problem = problems.replay(problems.personal(F + 4, F, start=start), A)
    run = ms.simulate(
        ms.independent(1e-30), problem, log("anything"), steps=3, dtype="float64", progress=False
    )
    assert ms.measure.policy_value(run, "reward").samples == 6
    assert ms.measure.policy_value(run, "reward").estimate == pytest.approx(table.reward.mean())
    weights = (table.action == 0) / table.propensity.astype(float)
    assert ms.measure.policy_value(run, "ips").estimate == pytest.approx(
        np.mean(weights * table.reward)
    )
    assert ms.measure.policy_value(run, "dr").estimate == pytest.approx(
        1 + np.mean(weights * (table.reward - 1))
    )
    np.testing.assert_allclose(run.column("present"), [1, 2 / 3, 1 / 3])


def test_the_open_bandit_log(filled):
    """Uniformly random choices among 80 items, at one of three places."""
    stream, table = log(), datasets.load_log("open_bandit")
    assert stream.clients == len({*table.keys})
    rows = stream.dealt.rows(0, 1, stream.steps)
    assert sorted(rows[rows >= 0]) == [*range(len(table.keys))]  # each row once
    for k, name in enumerate(np.unique(table.keys)):
        mine = rows[:, k][rows[:, k] >= 0]
        assert {*table.keys[mine]} == {name}
        assert np.all(np.diff(mine) > 0)
        assert np.all(rows[len(mine) :, k] == -1)
    first = replayed(stream, 1)
    shown = tuple(x[0] for x in first.shown)
    assert [x.shape[1:] for x in shown] == [(80, 45), (80, 41)]
    hidden = type(first.hidden)(*(x[0] for x in first.hidden))
    problems.replay(problems.personal(45, 41), 80).check(shown, hidden)
