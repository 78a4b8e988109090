"""The references against each other and against what can be worked out by hand."""

import numpy as np
import pytest

from . import quantiser, regret, steps
from .fedomd import fedomd
from .fedsea import fedsea
from .network import fedomd_delayed, ofediq_delayed
from .ofediq import ofediq

T, K, D = 30, 4, 3
SYNC = {2, 3, 7, 8, 9, 14, 20, 21, 28, 30}
UP = ([0, 0, 0, 0], [0, 1, 5, 12], [3, 3, 3, 3], [9, 0, 2, 1])
DOWN = ([0, 0, 0, 0], [4, 0, 1, 8], [2, 2, 2, 2], [0, 11, 6, 1])


def quadratic(seed):
    """gradient(x, k, t) of (x - a_kt)' A_kt (x - a_kt) / 2."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=(T + 1, K, D))
    root = rng.normal(size=(T + 1, K, D, D)) / np.sqrt(D)

    def gradient(x, k, t):
        return root[t, k].T @ (root[t, k] @ (x - centre[t, k]))

    return gradient


def cohorts(seed, T=T):
    """A list of clients for every step, some of them empty."""
    rng = np.random.default_rng(seed)
    drawn = {t: [k for k in range(K) if rng.uniform() < 0.5] for t in range(1, T + 1)}
    drawn[9] = []
    return lambda t: drawn[t]


def everyone(t):
    return list(range(K))


def box(x, g, eta):
    return steps.euclidean_box(x, g, eta, -1.0, 1.0)


def decaying(t):
    return 0.4 / np.sqrt(t)


def equal(one, two, atol=1e-13):
    np.testing.assert_allclose(one["models"], two["models"], rtol=0, atol=atol)
    np.testing.assert_allclose(one["server"], two["server"], rtol=0, atol=atol)


# --- without delays ---------------------------------------------------------------------------


def test_shapes_and_starts():
    x1 = np.arange(D) / 10
    for run in (
        fedomd(quadratic(0), x1, T, K, box, decaying, SYNC, cohorts(0)),
        fedsea(quadratic(0), x1, T, K, lambda x: x, decaying, 4),
        ofediq(quadratic(0), x1, T, K, 0.1, np.ones(K), 5, cohorts(0)),
        fedomd_delayed(quadratic(0), x1, T, K, box, decaying, SYNC, cohorts(0), UP[1], DOWN[1]),
        ofediq_delayed(quadratic(0), x1, T, K, 0.1, np.ones(K), SYNC, cohorts(0), UP[1], DOWN[1]),
    ):
        assert run["models"].shape == (T, K, D)
        assert run["server"].shape == (T + 1, D)
        assert np.array_equal(run["server"][0], x1)
        assert all(np.array_equal(run["models"][0, k], x1) for k in range(K))


def test_fedomd_synced_every_step_is_centralised_gradient_descent():
    gradient = quadratic(1)
    run = fedomd(gradient, np.zeros(D), T, K, steps.euclidean, decaying, range(1, T + 1), everyone)
    x = np.zeros(D)
    for t in range(1, T + 1):
        np.testing.assert_allclose(run["models"][t - 1], np.tile(x, (K, 1)), atol=1e-13)
        x = x - decaying(t) * np.mean([gradient(x, k, t) for k in range(K)], axis=0)
        np.testing.assert_allclose(run["server"][t], x, atol=1e-13)


def test_fedomd_never_synced_is_k_independent_runs():
    gradient = quadratic(2)
    run = fedomd(gradient, np.zeros(D), T, K, box, decaying, set(), everyone)
    assert np.all(run["server"] == 0)
    for k in range(K):
        alone = fedomd(
            lambda x, _, t, k=k: gradient(x, k, t), np.zeros(D), T, 1, box, decaying, set(), None
        )
        np.testing.assert_array_equal(run["models"][:, k], alone["models"][:, 0])


def test_fedomd_mean_of_nothing_is_not_zero():
    run = fedomd(quadratic(3), np.ones(D), T, K, box, decaying, SYNC, cohorts(3))
    assert cohorts(3)(9) == []
    np.testing.assert_array_equal(run["server"][9], run["server"][8])
    np.testing.assert_array_equal(run["models"][9], np.tile(run["server"][8], (K, 1)))


@pytest.mark.parametrize("tau", [1, 3, 7])
def test_fedsea_is_fedomd_with_the_euclidean_map(tau):
    for offset, sync in ((0, range(tau, T + 1, tau)), (1, range(1, T + 1, tau))):
        sea = fedsea(
            quadratic(4), np.zeros(D), T, K, lambda x: np.clip(x, -1, 1), decaying, tau, offset
        )
        equal(sea, fedomd(quadratic(4), np.zeros(D), T, K, box, decaying, set(sync), everyone))


def test_ofediq_message_is_the_sum_of_gradients():
    """The second line of (8): the sum of the gradients at the moving theta, for one period."""
    gradient, eta, L, rates = quadratic(5), 0.05, 5, np.array([0.2, 0.5, 0.9, 1.0])
    seen = {}
    run = ofediq(
        gradient,
        np.ones(D),
        L,
        K,
        eta,
        rates,
        L,
        lambda t: [0, 2],
        lambda m, k, t: seen.setdefault(k, m),
    )
    for k in (0, 2):
        theta, total = np.ones(D), np.zeros(D)
        for t in range(1, L + 1):
            g = gradient(theta, k, t)
            theta, total = theta - eta * g, total + g
        np.testing.assert_allclose(seen[k], total / rates[k], atol=1e-12)
    np.testing.assert_allclose(run["server"][L], np.ones(D) - eta / K * (seen[0] + seen[2]))
    assert np.all(run["models"] == 1)


def test_ofediq_with_period_one_and_everyone_is_fedogd():
    gradient = quadratic(6)
    ogd = fedomd(
        gradient, np.ones(D), T, K, steps.euclidean, lambda t: 0.05, range(1, T + 1), everyone
    )
    equal(ofediq(gradient, np.ones(D), T, K, 0.05, np.ones(K), 1, everyone), ogd, atol=1e-12)


# --- delays -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("who", [everyone, cohorts(7)])
def test_fedomd_without_delays_is_fedomd(seed, who):
    none = [0] * K
    plain = fedomd(quadratic(seed), np.zeros(D), T, K, box, decaying, SYNC, who)
    equal(
        fedomd_delayed(quadratic(seed), np.zeros(D), T, K, box, decaying, SYNC, who, none, none),
        plain,
        atol=0,
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("L", [1, 3, 7])
@pytest.mark.parametrize("who", [everyone, cohorts(8)])
def test_ofediq_without_delays_is_ofediq(seed, L, who):
    none, rates = [0] * K, np.array([0.3, 0.5, 0.8, 1.0])
    plain = ofediq(quadratic(seed), np.ones(D), T, K, 0.02, rates, L, who)
    sync = range(L, T + 1, L)
    delayed = ofediq_delayed(quadratic(seed), np.ones(D), T, K, 0.02, rates, sync, who, none, none)
    equal(delayed, plain, atol=1e-12)


@pytest.mark.parametrize("up", UP)
@pytest.mark.parametrize("down", DOWN)
def test_server_applies_each_sampled_gradient_exactly_once(up, down):
    """Linear losses whose gradient is a unit vector of its own for every (k, t): the server's model
    then shows which gradients were applied, how often and when."""
    who, rates, eta = cohorts(9), np.array([0.25, 0.5, 0.75, 1.0]), 0.5

    def gradient(x, k, t):
        unit = np.zeros((T, K))
        unit[t - 1, k] = 1.0
        return unit.ravel()

    run = ofediq_delayed(gradient, np.zeros(T * K), T, K, eta, rates, SYNC, who, up, down)
    applied = -run["server"].reshape(T + 1, T, K) * K / eta * rates  # 0: not yet; 1: once
    syncs = sorted(SYNC)
    for k in range(K):
        for t in range(1, T + 1):
            sent = min(s for s in syncs if s >= t)  # the client's first sync step after it
            merged = [s for s in syncs if s >= sent + up[k]] if k in who(sent) else []
            for now in range(T + 1):
                expected = 1.0 if merged and now >= merged[0] else 0.0
                assert abs(applied[now, t - 1, k] - expected) < 1e-12


@pytest.mark.parametrize("up", UP)
@pytest.mark.parametrize("down", DOWN)
def test_clients_decide_with_the_newest_broadcast_that_reached_them(up, down):
    gradient, who = quadratic(10), cohorts(10)
    run = ofediq_delayed(gradient, np.ones(D), T, K, 0.02, np.ones(K), SYNC, who, up, down)
    for k in range(K):
        for t in range(1, T + 1):
            last = max([s for s in SYNC if s < t], default=0)  # the last time the link was served
            made = max([u for u in SYNC if u + down[k] <= last], default=0)
            np.testing.assert_array_equal(run["models"][t - 1, k], run["server"][made])


@pytest.mark.parametrize("up", UP)
@pytest.mark.parametrize("down", DOWN)
def test_fedomd_merges_and_downloads_when_it_should(up, down):
    """Replay from the trace alone: what the server merges is the mean of exactly the models whose
    messages are due, and a client is overwritten exactly when a new broadcast has reached it."""
    gradient, who, syncs = quadratic(11), cohorts(11), sorted(SYNC)
    run = fedomd_delayed(gradient, np.zeros(D), T, K, box, decaying, SYNC, who, up, down)
    learnt = {
        (k, t): box(run["models"][t - 1, k], gradient(run["models"][t - 1, k], k, t), decaying(t))
        for k in range(K)
        for t in range(1, T + 1)
    }
    before = {s: [0, *syncs][i] for i, s in enumerate(syncs)}  # the sync before s
    for t in range(1, T + 1):
        if t not in SYNC:
            np.testing.assert_array_equal(run["server"][t], run["server"][t - 1])
        else:
            merged = [
                learnt[k, s] for s in syncs for k in who(s) if s <= t and before[t] < s + up[k] <= t
            ]
            expected = np.mean(merged, axis=0) if merged else run["server"][t - 1]
            np.testing.assert_allclose(run["server"][t], expected, atol=1e-14)
        for k in range(K):
            if t == T:
                continue
            new = [u for u in syncs if t in SYNC and before[t] < u + down[k] <= t]
            expected = run["server"][max(new)] if new else learnt[k, t]
            np.testing.assert_array_equal(run["models"][t, k], expected)


def test_delays_by_hand():
    """Two clients, one number, gradients 1 and 10, sync after every step; client 1 is one step late
    up, client 0 two steps late down. Every value below can be followed with a pencil."""
    run = ofediq_delayed(
        lambda x, k, t: np.array([1.0, 10.0])[k : k + 1],
        np.zeros(1), 4, 2, 1.0, [1, 1], range(1, 5), lambda t: [0, 1], [0, 1], [2, 0],
    )  # fmt: skip
    # merged: t=1: 1; t=2: 1 + 10 (sent at 1); t=3 and t=4 likewise; each over K = 2
    np.testing.assert_allclose(run["server"][:, 0], [0, -0.5, -6, -11.5, -17])
    np.testing.assert_allclose(
        run["models"][:, 0, 0], [0, 0, 0, -0.5]
    )  # made at 1, at hand after 3
    np.testing.assert_allclose(run["models"][:, 1, 0], [0, -0.5, -6, -11.5])

    run = fedomd_delayed(
        lambda x, k, t: np.array([1.0, 10.0])[k : k + 1],
        np.zeros(1), 4, 2, steps.euclidean, lambda t: 1.0, range(1, 5), lambda t: [0, 1],
        [0, 1], [2, 0],
    )  # fmt: skip
    # t=1: x = -1, -10; only client 0's arrives: server -1; client 1 takes it, client 0 stays at -1
    # t=2: x = -2, -11; arrive -2 and -10 (sent at 1): -6; client 1 takes it, client 0 stays at -2
    # t=3: x = -3, -16; arrive -3 and -11: -7; client 1 takes it, client 0 the one made at 1: -1
    # t=4: x = -2, -17; arrive -2 and -16: -9
    np.testing.assert_allclose(run["server"][:, 0], [0, -1, -6, -7, -9])
    np.testing.assert_allclose(run["models"][:, 0, 0], [0, -1, -2, -1])
    np.testing.assert_allclose(run["models"][:, 1, 0], [0, -1, -6, -7])


def test_a_broadcast_is_downloaded_once():
    """Syncs after 1, 10 and 11, five steps down: at 11 nothing new has reached the client."""
    run = fedomd_delayed(
        lambda x, k, t: np.ones(1), np.zeros(1), 12, 1, steps.euclidean, lambda t: 1.0,
        {1, 10, 11}, lambda t: [0], [0], [5],
    )  # fmt: skip
    # server: -1 at 1, -10 at 10, -2 at 11; the client gets -1 after 10 and then walks on
    np.testing.assert_allclose(run["models"][:, 0, 0], [*range(0, -10, -1), -1, -2])
    np.testing.assert_allclose(run["server"][[1, 9, 10, 11, 12], 0], [-1, -1, -10, -2, -2])


# --- quantiser --------------------------------------------------------------------------------


def test_published_plans():
    s, b, p = quantiser.plan(0.1, 34826)
    assert (s, b, round(p, 4)) == (17, 1134, 0.5151)
    s, b, p = quantiser.plan(0.01, 34826)
    assert (s, b, round(p, 3)) == (3, 777, 0.086)


@pytest.mark.parametrize("gamma", [1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 1.0])
def test_plan_minimises_20_over_a_long_range(gamma):
    s, b, p = quantiser.plan(gamma, 1000)
    values = [quantiser.objective(n, gamma) for n in range(1, 20001)]
    assert s == 1 + int(np.argmin(values))
    assert b >= 1
    assert 0 < p <= 1


def test_plan_spends_the_budget():
    """p times (13) is 32 gamma D, up to the floor in b (where p is not cut)."""
    s, b, p = quantiser.plan(0.01, 34826)
    assert abs(p * quantiser.bits(34826, s, b) / (32 * 0.01 * 34826) - 1) < 1e-3


def test_quantise_by_hand():
    v = np.array([3.0, -4.0, 0.0, 0.0, 1.0])  # blocks (3, -4, 0) of norm 5 and (0, 1) of norm 1
    out = quantiser.quantise(v, 2, 2, np.array([0.0, 0.0, 0.9, 0.99, 0.99]))
    np.testing.assert_allclose(out, [2.5, -2.5, 0, 0, 1])  # 1.2 -> 1, 1.6 -> 1, 2.99 -> 2
    out = quantiser.quantise(v, 2, 2, np.array([0.8, 0.4, 0.9, 0.0, 0.0]))
    np.testing.assert_allclose(out, [5, -5, 0, 0, 1])  # 1.2 + 0.8 -> 2, 1.6 + 0.4 -> 2
    assert np.array_equal(quantiser.quantise(np.zeros(5), 2, 2, np.full(5, 0.9)), np.zeros(5))
    assert quantiser.block_sizes(11, 4) == [3, 3, 3, 2]


@pytest.mark.parametrize(("levels", "blocks"), [(1, 1), (3, 2), (7, 5)])
def test_quantiser_is_unbiased_within_its_variance(levels, blocks):
    """Exact moments: uniform on the midpoints of a fine grid instead of random numbers."""
    rng = np.random.default_rng(0)
    v = rng.normal(size=7)
    grid = (np.arange(2000) + 0.5) / 2000
    draws = np.array([quantiser.quantise(v, levels, blocks, np.full(7, u)) for u in grid])
    norm = np.linalg.norm(v)
    np.testing.assert_allclose(draws.mean(axis=0), v, rtol=0, atol=norm / levels / 2000)
    variance = np.sum(((draws - v) ** 2).mean(axis=0))
    assert variance <= quantiser.variance_factor(7, levels, blocks) * norm**2


def test_bits_and_variance_factor_by_hand():
    assert quantiser.bits(10, 3, 2) == 2 * 32 + 10 * 3
    assert quantiser.bits(10, 1, 1, word=64) == 64 + 20
    assert quantiser.variance_factor(10, 2, 3) == 1.0  # ceil(10/3) = 4: min(4/4, 2/2)
    assert quantiser.variance_factor(100, 1, 1) == 10.0  # min(100, 10)
    assert quantiser.variance_factor(100, 50, 1) == 100 / 2500


# --- regret -----------------------------------------------------------------------------------


def test_regret_of_the_papers_losses_in_closed_form():
    """(x - a)^2 / 2: the sum over clients and models splits into means and variances."""
    rng = np.random.default_rng(12)
    a = rng.normal(size=(T, K))
    models = rng.normal(size=(T, K, 1))

    def loss(x, k, t):
        return (x[0] - a[t - 1, k]) ** 2 / 2

    def best(n):
        return np.sum((a[:n] - a[:n].mean()) ** 2) / (2 * K)

    x = models[:, :, 0]
    expected = (x.var(axis=1) + a.var(axis=1) + (x.mean(axis=1) - a.mean(axis=1)) ** 2) / 2
    np.testing.assert_allclose(regret.collective_loss(models, loss), expected)
    np.testing.assert_allclose(
        regret.collective_regret(models, loss, best),
        np.cumsum(expected) - [best(n) for n in range(1, T + 1)],
    )
    np.testing.assert_allclose(regret.consensus_error(models), x.var(axis=1))
    np.testing.assert_allclose(regret.average_predictor(models), [x.mean()])


def test_the_best_fixed_model_has_no_regret():
    rng = np.random.default_rng(13)
    a = rng.normal(size=(T, K))
    models = np.full((T, K, 1), a.mean())

    def loss(x, k, t):
        return (x[0] - a[t - 1, k]) ** 2 / 2

    curve = regret.collective_regret(
        models, loss, lambda n: np.sum((a[:n] - a[:n].mean()) ** 2) / (2 * K)
    )
    assert abs(curve[-1]) < 1e-12
    assert np.all(curve > -1e-12)
