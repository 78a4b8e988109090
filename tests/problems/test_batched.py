"""The mean over a batch, of which only the first may be real."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mainstem.base import Batch, Flat, Sample
from mainstem.errors import BadData, BadParameter
from mainstem.problems import bandit, batched, linear, logistic
from mainstem.problems.bandit import Rewards
from tests.problems.slopes import AT, check_gradient

N = 7
RIDGE = 0.3


@functools.cache
def faced():
    """A batched logistic problem, compiled: (params, sample) -> the result, and the slope."""
    problem = Flat(batched(logistic(3, ridge=RIDGE, intercept=False)))

    @jax.jit
    def run(w, sample):
        found = problem.face(w, sample, AT)
        return found, problem.gradient(w, found.seen)

    return run


def draw(count, beyond=np.nan):
    """A batch whose places from `count` on hold what should not matter."""
    rng = np.random.default_rng(0)
    shown, hidden = rng.normal(size=(N, 3)), rng.integers(0, 2, N).astype(np.int32)
    shown[count:] = beyond
    return shown, hidden, rng.normal(size=3)


@pytest.mark.parametrize("count", [1, 4, N])
def test_loss_and_metrics_are_means_over_what_is_real(count):
    shown, hidden, w = draw(count)
    with jax.enable_x64(True):
        found, _ = faced()(w, Sample(shown, hidden, np.int32(count)))
    score, signs = shown[:count] @ w, 2 * hidden[:count] - 1
    losses = np.log1p(np.exp(-signs * score)) + RIDGE / 2 * w @ w
    np.testing.assert_allclose(found.loss, losses.mean(), rtol=1e-12)
    right = np.mean((score > 0) == (hidden[:count] == 1))
    np.testing.assert_allclose(found.metrics["correct"], right)
    assert float(found.metrics["present"]) == 1
    assert bool(found.informative)
    np.testing.assert_allclose(found.seen.weights, (np.arange(N) < count) / count)


def test_a_batch_without_a_count_is_all_real():
    shown, hidden, w = draw(N)
    with jax.enable_x64(True):
        whole, _ = faced()(w, Sample(shown, hidden))
        counted, _ = faced()(w, Sample(shown, hidden, np.int32(N)))
    np.testing.assert_allclose(whole.loss, counted.loss, rtol=1e-14)
    assert whole.informative is None
    assert "present" not in whole.metrics


def test_an_empty_batch_costs_nothing_and_teaches_nothing():
    shown, hidden, w = draw(0, beyond=1e9)
    with jax.enable_x64(True):
        found, _ = faced()(w, Sample(shown, hidden, np.int32(0)))
    assert float(found.loss) == 0
    assert not bool(found.informative)
    assert float(found.metrics["correct"]) == float(found.metrics["present"]) == 0


def test_gradient():
    shown, hidden, _ = draw(4, beyond=5.0)
    seen = Batch(Sample(shown, hidden), (np.arange(N) < 4) / 4)
    check_gradient(batched(logistic(3, ridge=RIDGE, intercept=False)), seen)


def test_what_is_not_real_does_not_reach_the_gradient():
    """Zero times NaN is NaN, so that leaving it out of the loss would not be enough."""
    slopes = []
    for beyond in (np.nan, 0.0):
        shown, hidden, w = draw(4, beyond)
        with jax.enable_x64(True):
            _, slope = faced()(w, Sample(shown, hidden, np.int32(4)))
        slopes.append(np.asarray(slope))
    np.testing.assert_array_equal(*slopes)
    assert np.isfinite(slopes[0]).all()


def test_form_is_the_mean_form():
    problem = batched(linear(3, ridge=RIDGE, intercept=False))
    shown, _, w = draw(4, beyond=5.0)
    seen = Batch(Sample(shown, np.arange(N, dtype=float)), (np.arange(N) < 4) / 4)
    with jax.enable_x64(True):
        value, loss = jax.jit(lambda w: (problem.form(seen).value(w), problem.loss(w, seen)))(w)
    np.testing.assert_allclose(value, loss, rtol=1e-12)
    assert batched(logistic(3)).form is None


@pytest.mark.parametrize("explored", [[5], [1, 5], [0]])
def test_a_batch_of_bandits_teaches_if_one_of_the_real_ones_was_explored(explored):
    """The first two of seven are real."""
    problem = batched(bandit(linear(3), actions=2, epsilon=0.5))
    which = jnp.asarray(np.isin(np.arange(N), explored))
    real = jnp.asarray(np.arange(N) < 2) / 2
    seen = Batch(Sample(np.zeros((N, 3)), np.zeros(N), which), real)
    assert bool(problem.informative(seen)) == bool({0, 1} & {*explored})
    assert batched(linear(3)).informative is None


def test_what_does_not_fit_is_refused():
    with pytest.raises(BadParameter, match="batched: of must be a problem such as logistic"):
        batched(logistic)
    problem = batched(logistic(3))
    problem.check(np.zeros((5, N, 3)), np.zeros((5, N), int))
    with pytest.raises(BadData, match=r"logistic: wants features of shape \(3,\), the stream has"):
        problem.check(np.zeros((5, N, 2)), np.zeros((5, N), int))
    with pytest.raises(BadData, match="logistic: wants labels 0 to 1, row 9 has 2"):
        problem.check(np.zeros((5, N, 3)), np.where(np.arange(35) == 9, 2, 0).reshape(5, N))
    assert problem.vectorized is None
    assert problem.parameters == 4
    hidden = Rewards(np.zeros((5, N, 2)))
    batched(bandit(linear(3), actions=2, epsilon=0.5)).check(np.zeros((5, N, 2, 3)), hidden)
