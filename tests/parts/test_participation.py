"""Participation: the right frequencies, independently, and the same for the same key."""

import jax
import numpy as np
import pytest

from mainstem import random
from mainstem.errors import BadParameter
from mainstem.parts import bernoulli, everyone, exactly, given

T, K = 20_000, 6
KEY = random.root(11)
RATES = np.array([0.02, 0.1, 0.3, 0.5, 0.9, 1.0])


def sampled(participation, key=KEY, clients=K, steps=T):
    ask = jax.jit(jax.vmap(lambda t: participation.heard(key, t, clients)))
    return np.asarray(ask(np.arange(1, steps + 1)))


def near(frequency, rate, count):
    """Within 4.5 standard errors."""
    return np.all(np.abs(frequency - rate) <= 4.5 * np.sqrt(rate * (1 - rate) / count))


@pytest.fixture(scope="module")
def coins():
    return sampled(bernoulli(RATES))


@pytest.fixture(scope="module")
def lots():
    return sampled(exactly(2))


def test_everyone_is_everyone():
    assert sampled(everyone(), steps=3).all()
    assert everyone().everyone


def test_bernoulli_samples_each_client_at_its_own_rate(coins):
    assert near(coins.mean(axis=0), RATES, T)
    assert near(sampled(bernoulli(0.3)).mean(axis=0), np.full(K, 0.3), T)


def test_bernoulli_clients_and_steps_are_independent(coins):
    thrown = coins[:, :-1] - RATES[:-1]
    thrown = thrown / np.sqrt(RATES[:-1] * (1 - RATES[:-1]))
    between_clients = thrown.T @ thrown / T - np.eye(K - 1)
    across_steps = thrown[1:].T @ thrown[:-1] / T
    assert np.abs(between_clients[~np.eye(K - 1, dtype=bool)]).max() < 4.5 / np.sqrt(T)
    assert np.abs(across_steps).max() < 4.5 / np.sqrt(T)


def test_bernoulli_of_one_is_everyone(coins):
    assert coins[:, -1].all()
    assert bernoulli(1.0).everyone
    assert bernoulli([1.0, 1.0]).everyone
    assert not bernoulli([1.0, 0.5]).everyone


def test_exactly_samples_exactly_that_many(lots):
    assert np.all(lots.sum(axis=1) == 2)
    assert sampled(exactly(K), steps=3).all()


def test_exactly_is_uniform_over_clients_and_pairs(lots):
    assert near(lots.mean(axis=0), np.full(K, 2 / K), T)
    both = lots.astype(int).T @ lots / T
    pairs = both[np.triu_indices(K, 1)]
    assert near(pairs, np.full(len(pairs), 2 / (K * (K - 1))), T)


def test_exactly_is_independent_across_steps(lots):
    centred = (lots - 2 / K) / np.sqrt(2 / K * (1 - 2 / K))
    assert np.abs(centred[1:].T @ centred[:-1] / T).max() < 4.5 / np.sqrt(T)


def test_given_is_the_recorded_trace():
    trace = np.random.default_rng(0).random((9, 4)) < 0.5
    np.testing.assert_array_equal(sampled(given(trace), clients=4, steps=9), trace)
    np.testing.assert_array_equal(sampled(given(trace.tolist()), clients=4, steps=9), trace)


@pytest.mark.parametrize("make", [lambda: bernoulli(0.4), lambda: exactly(2)])
def test_same_key_same_draw_and_another_key_another(make):
    first, again, other = (sampled(make(), random.root(seed), steps=100) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)


@pytest.mark.parametrize(
    ("participation", "fits", "fails", "message"),
    [
        (
            bernoulli([0.1, 0.2]),
            (5, 2),
            (5, 3),
            "bernoulli: rate must have one entry for each of 3",
        ),
        (exactly(3), (5, 3), (5, 2), "exactly: count must be at most the 2 clients, got 3"),
        (given([[1, 0]] * 4), (4, 2), (5, 2), "given: trace must cover 5 steps of 2 clients"),
        (given([[1, 0]] * 4), (3, 2), (3, 3), "given: trace must cover 3 steps of 3 clients"),
    ],
)
def test_a_run_that_does_not_fit_is_refused(participation, fits, fails, message):
    participation.check(*fits)
    with pytest.raises(BadParameter, match=message):
        participation.check(*fails)


def test_the_others_fit_every_run():
    everyone().check(1, 1)
    bernoulli(0.1).check(7, 1)


@pytest.mark.parametrize("trace", [[1, 0], [[1, 0], [1]], [[[1]]]])
def test_a_trace_that_is_no_table_is_refused(trace):
    with pytest.raises(BadParameter, match="given: trace must"):
        given(trace)
