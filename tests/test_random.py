"""Counter-based draws: uniform, independent in every direction, the same however they are asked.

Statistical limits are 4.5 standard errors, or p > 1e-5; the draws are fixed, so nothing is flaky.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mainstem import random

N = 1 << 16
KEY = random.fold(random.root(3), random.STREAM, 5, 2)
PURPOSES = range(random.INIT, random.INIT + 8)
WAYS = {  # which of (seed, purpose, step, client, coordinate) varies while the others are fixed
    "coordinates": lambda n: random.uniform(KEY, (n,)),
    "steps": jax.vmap(lambda i: random.uniform(random.fold(random.root(3), random.CODEC, i, 7))),
    "clients": jax.vmap(lambda i: random.uniform(random.fold(random.root(3), random.CODEC, 7, i))),
    "seeds": jax.vmap(
        lambda i: random.uniform(random.fold(jnp.stack([i, jnp.zeros_like(i)]), random.CODEC, 7, 7))
    ),
    "high seeds": jax.vmap(
        lambda i: random.uniform(random.fold(jnp.stack([jnp.zeros_like(i), i]), random.CODEC, 7, 7))
    ),
}


@pytest.fixture(scope="module")
def draws():
    count = jnp.arange(N, dtype=jnp.uint32)
    return {
        way: np.asarray(ask(N) if way == "coordinates" else jax.jit(ask)(count), np.float64)
        for way, ask in WAYS.items()
    }


@pytest.mark.parametrize("way", WAYS)
def test_uniform_is_uniform(draws, way):
    u = draws[way]
    assert stats.kstest(u, "uniform").pvalue > 1e-5
    for cells in (16, 256, 1000):
        counts = np.histogram(u, cells, (0, 1))[0]
        assert stats.chisquare(counts).pvalue > 1e-5
    last_bits = (u * 2**24).astype(np.int64) % 16  # the low bits are as good as the high ones
    assert stats.chisquare(np.bincount(last_bits, minlength=16)).pvalue > 1e-5


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("lag", [1, 2, 3, 64])
def test_neighbours_are_independent(draws, way, lag):
    u = draws[way]
    early, late = u[:-lag], u[lag:]
    assert abs(np.corrcoef(early, late)[0, 1]) < 4.5 / np.sqrt(len(early))
    cells = np.histogram2d(early, late, 16, ((0, 1), (0, 1)))[0].ravel()
    assert stats.chisquare(cells).pvalue > 1e-5
    bits = (u * 2**24).astype(np.int64)
    flipped = np.bitwise_count(bits[:-lag] ^ bits[lag:])
    assert abs(flipped.mean() - 12) < 4.5 * np.sqrt(
        6 / len(flipped)
    )  # half of 24 bits, variance 24/4


def test_vectors_of_different_occasions_are_uncorrelated():
    """Every pair among neighbouring seeds, purposes, steps and clients, over 4,096 coordinates."""
    occasions = itertools.product((0, 1, 2**32), PURPOSES, (1, 2), (0, 1))
    keys = [random.fold(random.root(s), p, t, k) for s, p, t, k in occasions]
    u = np.asarray(jax.vmap(lambda key: random.uniform(key, (4096,)))(jnp.stack(keys)))
    correlation = np.corrcoef(u)[np.triu_indices(len(keys), 1)]
    assert np.abs(correlation).max() < 5 / np.sqrt(4096)  # 4,560 pairs
    assert abs(correlation.mean()) < 4.5 / np.sqrt(4096 * len(correlation))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**31 - 1))
def test_uniform_lies_on_the_24_bit_grid_below_one(seed, word):
    u = np.asarray(random.uniform(random.fold(random.root(seed), word), (500,)))
    assert u.dtype == np.float32
    assert u.min() >= 0
    assert u.max() < 1
    grid = u.astype(np.float64) * 2**24
    np.testing.assert_array_equal(grid, np.round(grid))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_the_largest_uniform_is_just_below_one(dtype, monkeypatch):
    """A float32 made of 32 set bits would round to 1.0."""
    monkeypatch.setattr(random, "bits", lambda key, shape: jnp.full(shape, 2**32 - 1, jnp.uint32))
    with jax.enable_x64(True):
        assert float(random.uniform(KEY, (), dtype)) == 1 - 2**-24


def test_normal_is_normal():
    x = np.asarray(random.normal(KEY, (N,)), np.float64)
    assert stats.kstest(x, "norm").pvalue > 1e-5
    # standard errors of the first four moments of a standard normal
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(np.mean(x**power) - moment) < 4.5 * np.sqrt(variance / N)
    assert np.abs(x).max() < 5.5
    expected = stats.norm.ppf(np.asarray(random.uniform(KEY, (N,)), np.float64) + 2.0**-25)
    np.testing.assert_allclose(x, expected, atol=2e-6, rtol=2e-6)


def test_normal_covers_both_tails(monkeypatch):
    """The extreme uniforms give finite, opposite numbers: the quantiles of half a grid cell."""
    ends = np.array([0, 1 - 2**-24], np.float32)
    monkeypatch.setattr(random, "uniform", lambda key, shape, dtype: jnp.asarray(ends))
    low, high = np.asarray(random.normal(KEY, (2,)))
    assert low == -high
    assert high == pytest.approx(stats.norm.isf(2**-25), rel=1e-4)


@pytest.mark.parametrize("ask", [random.uniform, random.normal])
def test_both_dtypes_draw_the_same_numbers(ask):
    single = np.asarray(ask(KEY, (1000,)))
    with jax.enable_x64(True):
        double = np.asarray(ask(KEY, (1000,)))
        asked = np.asarray(ask(KEY, (1000,), jnp.float32))
    assert (single.dtype, double.dtype, asked.dtype) == (np.float32, np.float64, np.float32)
    np.testing.assert_array_equal(single.astype(np.float64), double)
    np.testing.assert_array_equal(single, asked)


@pytest.mark.parametrize(
    ("ask", "tolerance"),
    [
        (random.bits, 0),
        (random.uniform, 0),
        (random.normal, 4e-7),
    ],  # a fused log may differ in ulps
    ids=["bits", "uniform", "normal"],
)
def test_vmapped_compiled_and_eager_draws_are_the_same(ask, tolerance):
    def draw(t, k):
        return ask(random.fold(KEY, t, k), (3, 2))

    def same(actual, expected):
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)

    t, k = np.arange(4), np.arange(4) + 10
    one_by_one = np.stack([draw(int(a), int(b)) for a, b in zip(t, k, strict=True)])
    same(jax.vmap(draw)(t, k), one_by_one)
    same(jax.jit(jax.vmap(draw))(t, k), one_by_one)
    same(np.asarray(ask(KEY, (6,))).reshape(3, 2), ask(KEY, (3, 2)))


def as_words(keys):
    keys = np.asarray(keys).reshape(-1, 2).astype(np.uint64)
    return keys[:, 0] << np.uint64(32) | keys[:, 1]


def test_different_words_give_different_keys():
    words = np.arange(300_000, dtype=np.uint32)
    keys = as_words(jax.vmap(lambda word: random.fold(KEY, word))(words))
    assert len(np.unique(keys)) == len(words)


def test_occasions_of_a_run_never_share_a_key():
    """Also one seed's purpose is not another seed's other purpose: seeds are independent runs."""
    seeds, steps, clients = np.arange(64), np.arange(1, 31), np.arange(20)
    grid = np.array(list(itertools.product(seeds, PURPOSES, steps, clients)), np.uint32)

    def key(row):
        return random.fold(jnp.stack([row[0], jnp.zeros_like(row[0])]), row[1], row[2], row[3])

    keys = as_words(jax.jit(jax.vmap(key))(grid))
    assert len(np.unique(keys)) == len(grid)
    above = [as_words(random.fold(random.root(s), p))[0] for s in range(8) for p in PURPOSES]
    assert len(set(above)) == len(above)


def test_words_fold_in_turn_and_their_order_matters():
    np.testing.assert_array_equal(random.fold(KEY, 1, 2), random.fold(random.fold(KEY, 1), 2))
    assert np.any(random.fold(KEY, 1, 2) != random.fold(KEY, 2, 1))


def test_mix_is_a_bijection_for_every_salt():
    """A bijection of 2^32 has no collisions on any subset."""
    words = np.random.default_rng(0).choice(2**32, N, replace=False).astype(np.uint32)
    for salt in (0, 1, 0xDEADBEEF):
        assert len(np.unique(random.mix(words, np.uint32(salt)))) == N


@pytest.mark.parametrize("salt", [0, 0x12345678])
def test_every_input_bit_changes_every_output_bit(salt):
    """Each of the 32 x 32 is flipped in about half of the cases."""
    words = np.random.default_rng(1).integers(0, 2**32, 4096, dtype=np.uint32)
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
    moved = random.mix(words[:, None] ^ bits, np.uint32(salt))
    flips = np.asarray(moved ^ random.mix(words, np.uint32(salt))[:, None])
    rates = np.mean((flips[:, :, None] & bits) != 0, axis=0)
    assert np.all(np.abs(rates - 0.5) < 0.05)


def test_root_uses_all_64_bits_and_is_a_key_of_jax():
    assert random.root(7 + (5 << 32)).tolist() == [7, 5]
    assert jax.random.normal(jnp.asarray(random.root(2**63)), (3,)).shape == (3,)


def test_scalars_are_drawn_without_a_shape():
    assert random.uniform(KEY).shape == ()
    assert random.normal(KEY).shape == ()
    assert float(random.uniform(KEY)) == float(random.uniform(KEY, (5,))[0])
