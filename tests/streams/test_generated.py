"""Streams made by a function."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from mainstem import random
from mainstem.base import At
from mainstem.problems import quadratic
from mainstem.streams import alternating, generated

T, K = 400, 50


def drawn(stream, steps=T, clients=K, seed=0):
    """All samples, as the engine would draw them."""

    def one(t, k):
        at = At(t, k, random.fold(random.root(seed), random.STREAM, t, k))
        return stream.sample((), at, None)

    t, k = np.arange(1, steps + 1), np.arange(clients)
    return jax.device_get(jax.jit(jax.vmap(jax.vmap(one, (None, 0)), (0, None)))(t, k))


def test_sample_gets_the_key_the_step_and_the_client():
    stream = generated(lambda key, t, k: (t, (k, random.uniform(key))), clients=3, steps=4)
    got = drawn(stream, 4, 3)
    np.testing.assert_array_equal(got.shown, np.repeat([[1], [2], [3], [4]], 3, axis=1))
    np.testing.assert_array_equal(got.hidden[0], np.repeat([[0, 1, 2]], 4, axis=0))
    assert len(np.unique(got.hidden[1])) == 12  # another key for every step and client
    assert (stream.clients, stream.steps, stream.rows()) == (3, 4, None)
    assert stream.chunk(0, 1, 50) == ()


def test_the_same_seed_draws_the_same_and_another_does_not():
    stream = alternating(clients=3)
    first, again, other = (drawn(stream, 5, 3, seed).hidden for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.all(first != other)


def test_alternating_is_the_papers_distribution():
    """Mitra et al. 2021, Section VII: a ~ N(2, 5), a variance; a at even steps, -a at odd ones."""
    targets = drawn(alternating(clients=K)).hidden[:, :, 0]
    signs = np.where(np.arange(1, T + 1) % 2 == 0, 1, -1)
    a = (targets * signs[:, None]).ravel()
    assert abs(a.mean() - 2) < 4.5 * np.sqrt(5 / a.size)
    assert abs(a.var() - 5) < 4.5 * 5 * np.sqrt(2 / a.size)
    assert stats.kstest((a - 2) / np.sqrt(5), "norm").pvalue > 1e-5
    rows = targets - 2 * signs[:, None]
    assert abs(np.corrcoef(rows[1:].ravel(), rows[:-1].ravel())[0, 1]) < 4.5 / np.sqrt(a.size)


def test_alternating_knows_its_expected_losses():
    stream, problem = alternating(clients=K, mean=1.0, variance=2.0, dimension=3), quadratic(3)
    targets = drawn(stream).hidden
    x = jnp.array([0.5, -1.0, 2.0])
    losses = 0.5 * np.sum((np.asarray(x) - targets) ** 2, axis=2)
    for parity in (0, 1):
        mine = losses[np.arange(1, T + 1) % 2 == parity].ravel()
        expected = float(stream.expected(parity + 2, 0).value(x))
        assert abs(mine.mean() - expected) < 4.5 * mine.std() / np.sqrt(mine.size)
    np.testing.assert_allclose(problem.loss(x, targets[0, 0]), losses[0, 0], rtol=1e-5)


def test_no_spread_is_no_noise():
    targets = drawn(alternating(clients=2, mean=3.0, variance=0.0), 4, 2).hidden[:, 0, 0]
    np.testing.assert_array_equal(targets, [-3, 3, -3, 3])
