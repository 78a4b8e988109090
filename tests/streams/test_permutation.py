"""Keyed permutations: bijections, each order equally likely, the same wherever they are computed."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mainstem import random
from mainstem.streams import evenly
from mainstem.streams.deal import REPEAT, InTurn
from mainstem.streams.permutation import grid, permuted

DRAWS = 20_000


def orders(count, draws=DRAWS):
    """The permutations with the keys 0, 1, ... of one seed."""
    root = jnp.asarray(random.root(3))
    one = jax.vmap(lambda n: permuted(random.fold(root, n), jnp.arange(count), count))
    return np.asarray(jax.jit(one)(jnp.arange(draws)))


def excess(counts, expected):
    """How far chi-square is above its mean, in standard deviations."""
    freedom = counts.size - 1
    return (np.sum((counts - expected) ** 2 / expected) - freedom) / math.sqrt(2 * freedom)


@pytest.mark.parametrize("count", [1, 7, 17, 23, 1797])
def test_it_is_a_bijection(count):
    assert all(np.array_equal(np.sort(each), np.arange(count)) for each in orders(count, 9))


@pytest.mark.parametrize("count", [2, 3, 5])
def test_every_order_of_a_few_is_equally_likely(count):
    number = {order: n for n, order in enumerate(itertools.permutations(range(count)))}
    found = [number[tuple(order)] for order in orders(count).tolist()]
    counts = np.bincount(found, minlength=len(number))
    assert excess(counts, DRAWS / len(number)) < 4.5


@pytest.mark.parametrize("count", [18, 57])
def test_two_elements_land_anywhere(count):
    """Beside each other, in one column, and the last two."""
    found = orders(count)
    for one, other in [(0, 1), (0, grid(count)[1]), (count - 2, count - 1)]:
        table = np.zeros((count, count))
        np.add.at(table, (found[:, one], found[:, other]), 1)
        apart = table[~np.eye(count, dtype=bool)]
        assert excess(apart, DRAWS / (count * (count - 1))) < 4.5


def test_a_large_order_has_no_pattern():
    count = 60_000
    order, following = orders(count, 2)
    assert np.sum(np.abs(np.diff(order)) == 1) < 12  # 2 are expected
    assert abs(np.corrcoef(np.arange(count), order)[0, 1]) < 5 / math.sqrt(count)
    assert np.sum(order == following) < 10  # 1 is expected


@pytest.mark.parametrize(
    ("count", "clients"), [(60_000, 1_000), (7, 3), (3, 7), (1, 5), (2**31 - 1, 2**20), (9, 2**30)]
)
@pytest.mark.parametrize("t", [1, 12_345, 2**31 - 1])
def test_the_place_in_a_pass_is_exact_in_32_bits(count, clients, t):
    dealt = InTurn(clients, count, REPEAT)
    for k in (0, clients - 1):
        number, place = dealt._turn(jnp.int32(t), jnp.int32(k))
        wanted = divmod((t - 1) * clients + k, count)
        assert (int(number), int(place)) == (wanted[0] % 2**32, wanted[1])


def test_it_is_the_same_in_both_precisions():
    dealt = evenly().to(np.zeros(57), None, clients=5)
    single = dealt.rows(9, 1, 40)
    with jax.enable_x64(True):
        double = dealt.rows(9, 1, 40)
    assert double.dtype == np.int32
    np.testing.assert_array_equal(single, double)
