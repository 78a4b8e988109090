"""Ways to deal: who gets which row, and when."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainstem.errors import BadData, BadParameter
from mainstem.streams import by_key, by_label, evenly, in_time

modest = settings(max_examples=10, deadline=None, derandomize=True)


def dealt(deal, rows=57, clients=5, target=None, keys=None):
    return deal.to(np.zeros(rows) if target is None else target, keys, clients)


@settings(max_examples=8, deadline=None, derandomize=True)  # each is compiled
@given(st.integers(1, 40), st.integers(1, 50), st.integers(0, 2**63 - 1))
def test_every_pass_is_a_permutation(rows, clients, seed):
    steps = 3 * rows  # 3 * clients passes
    order = dealt(evenly(), rows, clients).rows(seed, 1, steps).ravel()
    for each in order.reshape(-1, rows)[:6]:
        np.testing.assert_array_equal(np.sort(each), np.arange(rows))


def test_every_pass_has_an_order_of_its_own():
    order = dealt(evenly(), 57, 1).rows(0, 1, 4 * 57).reshape(4, 57)
    assert len({tuple(each) for each in order.tolist()}) == 4


def test_permutations_are_uniform():
    """The first row of a pass is any row: over 1,000 seeds each of 5 comes about 200 times."""
    firsts = [int(dealt(evenly(), 5, 1).rows(seed, 1, 1)[0, 0]) for seed in range(1000)]
    counts = np.bincount(firsts, minlength=5)
    assert np.sum((counts - 200) ** 2 / 200) < 23.5  # chi-square, 4 degrees, p = 1e-4


DEALS = {
    "evenly": dealt(evenly()),
    "by_label": dealt(by_label(0.5), target=np.arange(57) % 3),
    "by_key": dealt(by_key(), clients=None, keys=[*"abc"] * 19),
    "in_time": dealt(in_time()),
}


@modest
@given(seed=st.integers(0, 2**32), cuts=st.sets(st.integers(1, 9), max_size=5))
@pytest.mark.parametrize("name", DEALS)
def test_chunk_boundaries_do_not_matter(name, seed, cuts):
    """A chunk is a window of one table, wherever it is cut."""
    deal, last = DEALS[name], DEALS[name].steps or 50
    edges = [0, *sorted(last * cut // 10 for cut in cuts), last]
    pieces = [deal.rows(seed, a + 1, b) for a, b in itertools.pairwise(edges) if b > a]
    whole = deal.rows(seed, 1, last)
    np.testing.assert_array_equal(np.concatenate(pieces), whole)
    assert whole.shape == (last, deal.clients)
    assert whole.dtype == np.int32


def test_seeds_shuffle_evenly_and_nothing_else():
    for name, deal in DEALS.items():
        first, other = deal.rows(0, 1, 5), deal.rows(1, 1, 5)
        assert np.any(first != other) == (name == "evenly")


def owners(deal, count):
    """Which client each row belongs to; every row must belong to exactly one."""
    table = deal.rows(0, 1, count)
    mine = [set(table[:, k].tolist()) for k in range(deal.clients)]
    assert sum(map(len, mine)) == len(set().union(*mine)) == count
    return {row: k for k, rows in enumerate(mine) for row in rows}


def skew(alpha, labels, clients=8):
    """The mean share of a client's most common label."""
    of = owners(by_label(alpha, seed=1).to(labels, None, clients), len(labels))
    table = np.zeros((clients, labels.max() + 1))
    for row, k in of.items():
        table[k, labels[row]] += 1
    return np.mean(table.max(axis=1) / table.sum(axis=1))


def test_by_label_gives_every_row_to_one_client_and_is_more_skewed_for_small_alpha():
    labels = np.random.default_rng(0).integers(0, 10, 2000)
    shares = [skew(alpha, labels) for alpha in (100.0, 1.0, 0.1)]
    assert shares[0] < 0.25 < shares[1] < 0.5 < shares[2]


def test_by_label_repeats_each_clients_own_rows_in_one_order():
    labels = np.arange(57) % 3
    deal = dealt(by_label(0.5), target=labels)
    table = deal.rows(0, 1, 200)
    assert deal.steps is None
    for column in table.T:
        own = len(set(column.tolist()))
        np.testing.assert_array_equal(column[own:], column[:-own])
    again = dealt(by_label(0.5, seed=0), target=labels).rows(9, 1, 200)
    other = dealt(by_label(0.5, seed=1), target=labels).rows(9, 1, 200)
    np.testing.assert_array_equal(table, again)
    assert np.any(table != other)


def test_by_key_preserves_time_and_sorts_the_clients():
    keys = np.array(["b", "a", "c", "b", "a", "b", "c", "a"])
    deal = dealt(by_key(), rows=8, clients=None, keys=keys)
    assert (deal.clients, deal.steps) == (3, 3)
    np.testing.assert_array_equal(deal.rows(0, 1, 3), [[1, 0, 2], [4, 3, 6], [7, 5, -1]])
    assert dealt(by_key(), rows=8, clients=3, keys=keys).clients == 3


def test_by_key_sorts_numbers_as_numbers():
    deal = dealt(by_key(), rows=3, clients=None, keys=[10, 9, 2])
    np.testing.assert_array_equal(deal.rows(0, 1, 1), [[2, 1, 0]])


def test_in_time_gives_stretches_in_order():
    deal = dealt(in_time(), rows=11, clients=3)  # 4, 4 and 3 rows
    assert deal.steps == 4
    found = [[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, -1]]
    np.testing.assert_array_equal(deal.rows(0, 1, 4), found)


def test_an_empty_client_is_refused():
    with pytest.raises(BadData, match="in_time: client 3 of 4 gets no rows: take fewer clients"):
        dealt(in_time(), rows=3, clients=4)
    with pytest.raises(BadData, match=r"by_label: client .* of 50 gets no rows"):
        dealt(by_label(0.1), clients=50, target=np.zeros(57, int))


@pytest.mark.parametrize("deal", [evenly(), by_label(1.0), in_time()])
@pytest.mark.parametrize("clients", [None, 0, 2.5])
def test_the_number_of_clients_is_needed(deal, clients):
    with pytest.raises(BadParameter, match="clients must be an integer of at least 1"):
        dealt(deal, clients=clients, target=np.zeros(57, int))


def test_other_refusals():
    with pytest.raises(
        BadParameter, match="by_key: clients must be left out or 3, the keys, got 4"
    ):
        dealt(by_key(), rows=3, clients=4, keys=[*"abc"])
    with pytest.raises(BadData, match="by_label: wants integer labels, the target is float64"):
        dealt(by_label(1.0))
