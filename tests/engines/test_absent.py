"""Clients that see nothing: no loss, nothing learnt, and metrics of those who are there."""

import jax.numpy as jnp
import numpy as np
import pytest

import mainstem as ms
from mainstem import problems, random, streams
from mainstem.engines.simulate.admission import admit
from tests.streams.replayed import replayed

T, K, STEP = 15, 5, 0.1
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 3)), RNG.normal(size=40)
STREAM = streams.sometimes(streams.arrays(X, Y, clients=K), rate=[1.0, 0.7, 0.5, 0.3, 0.1])
PROBLEM = problems.linear(3, intercept=False)


def simulated(algorithm, stream=STREAM, **settings):
    chosen = {"steps": T, "dtype": "float64", "progress": False} | settings
    return ms.simulate(algorithm, PROBLEM, stream, **chosen)


@pytest.mark.parametrize("plain", [False, True])
def test_fedogd_is_the_loop_over_those_present(plain):
    got, weights = replayed(STREAM, T), [0.0, 2.0, 0.0, 0.0, 5.0]
    w, losses, weighted, errors = np.zeros(3), [], [], []
    for x, y, here in zip(got.shown, got.hidden, got.count, strict=True):
        off = np.where(here, x @ w - y, 0)
        losses.append(np.mean(off**2 / 2))
        weighted.append(np.mean(weights * off**2 / 2))
        errors.append(np.sum(off**2))
        w = w - STEP / K * x.T @ off
    run = simulated(ms.fedogd(STEP), plain=plain, weights=weights)
    np.testing.assert_allclose(run.loss, losses, rtol=1e-12)
    np.testing.assert_allclose(run.column("weighted"), weighted, rtol=1e-12)
    np.testing.assert_allclose(run.model, w, rtol=1e-12)
    np.testing.assert_allclose(run.column("present"), got.count.mean(axis=1))
    np.testing.assert_allclose(run.mse, np.cumsum(errors) / np.cumsum(got.count.sum(axis=1)))
    assert run.spec["simulate"]["weights"] == weights
    assert 0 < got.count.sum() < got.count.size


def test_the_fast_path_is_the_plain_one():
    algorithm = ms.ofediq(STEP, rate=0.4, period=3)
    fast, plain = simulated(algorithm), simulated(algorithm, plain=True)
    for name in fast.columns:
        np.testing.assert_allclose(fast.trace[name], plain.trace[name], rtol=0, atol=1e-12)
    np.testing.assert_allclose(fast.client_models, plain.client_models, rtol=0, atol=1e-12)


def test_where_nothing_came_there_may_be_anything():
    """Even in the gradient of a sum, in the collective loss and in hindsight; at first nobody comes."""

    def sample(key, t, k):
        x = random.normal(key, (3,))
        here = (t + k) % 3 > 0
        x = jnp.where(here & (t > 1), x, jnp.nan)
        return x, jnp.sum(x), jnp.where(t > 1, here, False).astype(jnp.int32)

    run = simulated(ms.fedogd(STEP), streams.generated(sample, K), measure=["collective"])
    assert run.loss[0] == run.mse[0] == run.column("present")[0] == 0
    assert np.isfinite(run.loss).all()
    np.testing.assert_allclose(run.column("collective"), run.loss, rtol=1e-12)
    assert run.loss[-1] < 0.5 * run.loss[1]
    regret = run.regret(kind="global")  # the sum of three features is predicted by ones
    assert regret.values[0] == pytest.approx(run.loss.sum(), abs=1e-9)
    np.testing.assert_allclose(regret.params, np.ones(3), atol=1e-6)


def test_who_sees_nothing_at_first_is_not_checked():
    """Its labels would not do; client 0's are fine."""

    def sample(key, t, k):
        return random.normal(key, (3,)), jnp.where(k == 0, t % 2, 7), (k == 0).astype(jnp.int32)

    def admitted(made):
        return admit(ms.fedogd(STEP), problems.logistic(3), streams.generated(made, 3), T, ())

    admitted(sample)
    with pytest.raises(ms.MainstemError, match="logistic: wants labels 0 to 1, row 1 has 7"):
        admitted(lambda key, t, k: sample(key, t, k)[:2])


@pytest.mark.parametrize(
    "weights",
    [[1.0, 1.0], [1.0] * 6, [-1.0] * 5, [0.0] * 5, [np.nan] * 5, "heavy", 1.0, [[1.0] * 5]],
)
def test_weights_that_do_not_fit_are_refused(weights):
    wanted = "simulate: weights must be 5 numbers of at least 0, not all 0"
    with pytest.raises(ms.MainstemError, match=wanted):
        simulated(ms.fedogd(STEP), weights=weights)
