"""Collects against NumPy on the bodies that arrived."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainstem import parts
from mainstem.base import Arrivals

N, D = 9, 3
OTHERWISE = np.array([7.0, 8.0, 9.0])


def trimmed(share):
    def center(arrived):
        cut = int(np.floor(share * len(arrived) + 1e-9))
        return np.sort(arrived, axis=0)[cut : len(arrived) - cut].mean(axis=0)

    return center


def shortened(arrived):
    """No body longer than 1."""
    return arrived / np.maximum(1, np.linalg.norm(arrived, axis=1, keepdims=True))


CENTERS = {
    "clipped median": (
        parts.clipped(1.0, of=parts.median()),
        lambda arrived: np.median(shortened(arrived), axis=0),
    ),
    "median": (parts.median(), lambda arrived: np.median(arrived, axis=0)),
    "trimmed 0": (parts.trimmed_mean(0.0), trimmed(0.0)),
    "trimmed 0.2": (parts.trimmed_mean(0.2), trimmed(0.2)),
    "trimmed 0.49": (parts.trimmed_mean(0.49), trimmed(0.49)),
}


def test_a_clipped_total_is_of_shortened_bodies():
    bodies, weights = world(3, [True] * N)
    with jax.enable_x64(True):
        got = parts.clipped(1.0).gather(arrivals(bodies, weights), 20)
    assert np.allclose(got.sum, weights @ shortened(bodies))
    assert (np.linalg.norm(bodies, axis=1) > 1).any()


def arrivals(bodies, weights):
    """The arrivals; a sum or a center does not use who sent them, when, and on which broadcast."""
    client = jnp.arange(len(bodies), dtype=jnp.int32)
    return Arrivals(bodies, weights, client, sent=client + 1, base=None)


@functools.cache
def compiled(name):
    collect = parts.total() if name == "total" else CENTERS[name][0]

    def run(bodies, weights):
        got = collect.gather(arrivals(bodies, weights), 20)
        return got, got.mean(otherwise=OTHERWISE)

    return jax.jit(run)


def gathered(name, bodies, weights):
    with jax.enable_x64(True):
        return jax.device_get(compiled(name)(bodies, weights))


def world(seed, arrived):
    rng = np.random.default_rng(seed)
    bodies = rng.normal(size=(N, D))
    weights = np.where(arrived, rng.uniform(0.5, 3, size=N), 0)
    missing = np.flatnonzero(~np.array(arrived))
    bodies[missing] = rng.choice([np.nan, np.inf, -1e9], (len(missing), D))  # may hold anything
    return bodies, weights


some = given(
    seed=st.integers(0, 2**32 - 1),
    arrived=st.lists(st.booleans(), min_size=N, max_size=N).filter(any),
)
modest = settings(max_examples=40, deadline=None, derandomize=True)


@modest
@some
def test_total_is_the_weighted_sum_of_what_arrived(seed, arrived):
    bodies, weights = world(seed, arrived)
    got, mean = gathered("total", bodies, weights)
    expected = sum(w * body for w, body in zip(weights, bodies, strict=True) if w > 0)
    np.testing.assert_allclose(got.sum, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(got.weight, weights.sum(), rtol=1e-12)
    np.testing.assert_allclose(mean, expected / weights.sum(), rtol=1e-12, atol=1e-12)
    assert got.count == sum(arrived)
    assert got.clients == 20


@modest
@some
@pytest.mark.parametrize("name", CENTERS)
def test_center_is_numpys_on_what_arrived(name, seed, arrived):
    """Odd and even counts, whatever the weights; `sum` is such that `mean` is the center."""
    bodies, weights = world(seed, arrived)
    got, mean = gathered(name, bodies, weights)
    expected = CENTERS[name][1](bodies[np.array(arrived)])
    np.testing.assert_allclose(mean, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(got.sum, expected * weights.sum(), rtol=1e-12, atol=1e-12)
    assert got.count == sum(arrived)


@pytest.mark.parametrize("name", ["total", *CENTERS])
def test_a_mean_of_nothing_is_what_was_there_before(name):
    got, mean = gathered(name, np.full((N, D), np.nan), np.zeros(N))
    np.testing.assert_array_equal(mean, OTHERWISE)
    np.testing.assert_array_equal(got.sum, np.zeros(D))
    assert (got.weight, got.count) == (0, 0)


@pytest.mark.parametrize("name", ["median", "trimmed 0.2"])
def test_one_liar_changes_a_center_only_among_the_honest(name):
    bodies = np.random.default_rng(0).normal(size=(N, D))
    honest = bodies[1:]
    bodies[0] = 1e12
    _, mean = gathered(name, bodies, np.ones(N))
    assert np.all((mean >= honest.min(axis=0)) & (mean <= honest.max(axis=0)))


@modest
@given(seed=st.integers(0, 2**32 - 1))
@pytest.mark.parametrize("name", CENTERS)
def test_a_client_has_one_vote_however_often_it_sends(name, seed):
    """The vote is the mean of its messages."""
    rng = np.random.default_rng(seed)
    bodies, weights = world(seed, rng.random(N) < 0.8)
    client = rng.integers(0, 4, N)
    arrived = Arrivals(bodies, weights, client, sent=client, base=None)
    with jax.enable_x64(True):
        got = CENTERS[name][0].gather(jax.tree.map(jnp.asarray, arrived), 4)
    votes = [
        np.average(
            shortened(bodies[mine]) if "clipped" in name else bodies[mine],
            axis=0,
            weights=weights[mine],
        )
        for k in range(4)
        if (mine := (client == k) & (weights > 0)).any()
    ]
    assert int(got.count) == len(votes)
    if votes:
        center = trimmed(CENTERS[name][0].share) if "trimmed" in name else np.median
        expected = center(np.array(votes)) if "trimmed" in name else np.median(votes, axis=0)
        found = np.asarray(got.sum)
        np.testing.assert_allclose(found, expected * weights.sum(), rtol=1e-10, atol=1e-10)


def test_only_the_total_may_be_summed_in_parts():
    assert parts.total().additive
    assert not parts.median().additive
    assert not parts.trimmed_mean(0.1).additive
    bodies, weights = world(3, [True] * N)
    whole, _ = gathered("total", bodies, weights)
    first, _ = gathered("total", bodies, np.where(np.arange(N) < 4, weights, 0))
    rest, _ = gathered("total", bodies, np.where(np.arange(N) < 4, 0, weights))
    np.testing.assert_allclose(first.sum + rest.sum, whole.sum, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("share", "count"), [(0.29, 100)])
def test_the_cut_does_not_depend_on_the_dtype(share, count, dtype):
    """0.29 * 100 is 28.999... in float64, and still 29 bodies go at either end."""
    bodies = np.zeros((count, 1))
    cut = round(share * count)
    bodies[:cut], bodies[-cut:] = -1e6, 1e9
    with jax.enable_x64(dtype == "float64"):
        arrived = arrivals(jnp.asarray(bodies, dtype), jnp.ones(count, dtype))
        got = parts.trimmed_mean(share).gather(arrived, count)
    np.testing.assert_array_equal(got.sum, [0])


def test_each_passes_on_all_arrivals():
    bodies, weights = world(4, [True, False, True] + [False] * (N - 3))
    arrived = arrivals(jnp.asarray(bodies), jnp.asarray(weights))._replace(base=jnp.ones((N, 2)))
    got = parts.each().gather(arrived, 20)
    assert got.each is arrived
    assert (int(got.count), got.clients) == (2, 20)
    np.testing.assert_allclose(got.weight, weights.sum(), rtol=1e-6)
    assert got.sum.size == 0  # no use for a sum where all are seen
    assert (parts.each().additive, parts.each().based) == (False, True)
    assert not any(other.based for other in (parts.total(), parts.median()))
