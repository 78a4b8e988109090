"""Bandits: how often they explore, what they reveal, and the value of another policy from a log."""

import jax
import numpy as np
import pytest

from mainstem import random
from mainstem.base import At, Flat, Sample
from mainstem.errors import BadData, BadParameter
from mainstem.problems import bandit, logistic, personal, replay
from mainstem.problems.bandit import Decision, Logged, Rewards

A = 4
OF = personal(shared=2, own=1)
W = np.array([1.0, -0.5, 0.3])


def contexts(seed, *shape):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(*shape, A, 2)), rng.normal(size=(*shape, A, 1))


def values(shown):
    """The value that the model predicts for each action, in NumPy."""
    return np.concatenate(shown, axis=-1) @ W


def decided(problem, shown, count, t=3):
    """`count` decisions in one context, each with a key of its own."""

    def one(n):
        key = random.fold(random.root(0), random.DECIDE, n)
        return Flat(problem).decide(W.astype(np.float32), shown, At(t, 0, key))

    return jax.device_get(jax.jit(jax.vmap(one))(np.arange(count)))


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_epsilon_explores_as_often_and_as_evenly_as_stated(epsilon):
    count, shown = 40_000, contexts(0)
    made = decided(bandit(OF, A, epsilon=epsilon), shown, count)
    best = int(np.argmax(values(shown)))
    sure = 4.5 * 0.5 / np.sqrt(count)  # 4.5 standard errors, a share having a variance up to 1/4
    assert abs(made.explored.mean() - epsilon) < sure
    assert np.all(made.action[~made.explored] == best)
    drawn = np.bincount(made.action[made.explored], minlength=A) / made.explored.sum()
    np.testing.assert_allclose(drawn, 1 / A, atol=sure / np.sqrt(epsilon))
    chances = epsilon / A + (1 - epsilon) * (np.arange(A) == best)
    np.testing.assert_allclose(made.chances, np.tile(chances, (count, 1)), rtol=1e-6)
    taken = np.bincount(made.action, minlength=A) / count  # the stated odds are the real ones
    np.testing.assert_allclose(taken, chances, atol=sure)
    np.testing.assert_allclose(made.values[0], values(shown), rtol=1e-5)


def test_a_period_explores_on_every_so_manyth_step_and_then_evenly():
    shown, best = contexts(1), int(np.argmax(values(contexts(1))))
    problem = bandit(OF, A, period=3)

    def one(t):
        key = random.fold(random.root(0), random.DECIDE, t)
        return Flat(problem).decide(W.astype(np.float32), shown, At(t, 0, key))

    steps = np.arange(1, 9001, dtype=np.int32)
    made = jax.device_get(jax.jit(jax.vmap(one))(steps))
    np.testing.assert_array_equal(made.explored, steps % 3 == 0)
    assert np.all(made.action[~made.explored] == best)
    np.testing.assert_array_equal(made.chances[0], np.arange(A) == best)
    np.testing.assert_array_equal(made.chances[2], np.full(A, 1 / A))
    drawn = np.bincount(made.action[made.explored], minlength=A) / 3000
    np.testing.assert_allclose(drawn, 1 / A, atol=4.5 * np.sqrt(3 / 16 / 3000))


def chose(action, shown, explored=True):
    return Decision(np.int32(action), np.full(A, 1 / A), values(shown), np.bool_(explored))


@pytest.mark.parametrize("explored", [True, False])
def test_the_reward_of_the_action_alone_is_revealed_and_only_exploring_teaches(explored):
    shown, reward = contexts(2), np.array([0.1, 0.9, 0.4, 0.3])
    problem, vectors = bandit(OF, A, epsilon=0.5), Flat(bandit(OF, A, epsilon=0.5))
    sample = Sample(shown, Rewards(reward, reward + 0.05))
    with jax.enable_x64(True):
        decision = jax.tree.map(jax.numpy.asarray, chose(2, shown, explored))
        seen = problem.reveal(decision, sample)
        metrics = problem.metrics(decision, sample)
        loss, slope = vectors.loss(W, seen), vectors.gradient(W, seen)
        nothing_known = problem.metrics(decision, Sample(shown, Rewards(reward)))
    assert jax.tree.leaves(seen)[-2] == 0.4  # and no other reward is in it
    np.testing.assert_array_equal(np.concatenate(seen.shown), [*shown[0][2], *shown[1][2]])
    residual = values(shown)[2] - 0.4
    np.testing.assert_allclose(loss, explored * residual**2, rtol=1e-12)
    x = np.concatenate(seen.shown)
    np.testing.assert_allclose(slope, explored * 2 * residual * x, rtol=1e-12, atol=0)
    assert bool(problem.informative(seen)) == explored
    np.testing.assert_allclose(
        [metrics["reward"], metrics["regret"]], [0.4, 0.95 - 0.45], rtol=1e-12
    )
    assert [*nothing_known] == ["reward"]


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_ips_and_dr_are_unbiased(epsilon):
    """Over what the log's policy might have done, both average to what one's own would earn.

    Exactly: sum_a propensity(a) ips(a) = sum_a chances(a) mean(a), whatever the model predicts.
    """
    rng = np.random.default_rng(3)
    shown, mean = contexts(3, 6), rng.uniform(size=(6, A))
    odds = rng.dirichlet(np.ones(A), size=6)
    problem = replay(OF, A, epsilon=epsilon)
    vectors = Flat(problem)

    def row(shown, action, reward, propensity):
        sample = Sample(shown, Logged(action, reward, propensity))
        decision = vectors.decide(W, shown, At(1, 0, random.root(0)))
        return problem.metrics(decision, sample), problem.reveal(decision, sample)

    over_actions = jax.vmap(row, in_axes=(None, 0, 0, 0))
    with jax.enable_x64(True):
        actions = np.tile(np.arange(A), (6, 1))
        made = jax.jit(jax.vmap(over_actions))(shown, actions, mean, odds)
        metrics, seen = jax.device_get(made)
    best = values(shown).argmax(axis=1)
    chances = epsilon / A + (1 - epsilon) * (np.arange(A) == best[:, None])
    earned = np.sum(chances * mean, axis=1)
    for name in ("ips", "dr"):
        np.testing.assert_allclose(np.sum(odds * metrics[name], axis=1), earned, rtol=1e-12)
    np.testing.assert_array_equal(metrics["reward"], mean)
    np.testing.assert_array_equal(seen.shown[0], shown[0])  # the context of the logged action
    np.testing.assert_array_equal(seen.hidden, mean)
    assert np.all(seen.count)  # every row of a log teaches
    predicted = np.sum(chances * values(shown), axis=1)[:, None]
    corrected = predicted + chances / odds * (mean - values(shown))
    np.testing.assert_allclose(metrics["dr"], corrected, rtol=1e-12)


def test_averages_over_a_drawn_log_come_near_the_policys_worth():
    """As above, with actions and rewards drawn: within 4.5 standard errors."""
    count, rng = 50_000, np.random.default_rng(4)
    shown, mean, odds = contexts(4), rng.uniform(size=A), np.array([0.1, 0.2, 0.3, 0.4])
    action = rng.choice(A, size=count, p=odds)
    reward = (rng.uniform(size=count) < mean[action]).astype(float)
    problem = replay(OF, A, epsilon=0.4)

    def row(action, reward, propensity):
        decision = Flat(problem).decide(W, shown, At(1, 0, random.root(0)))
        return problem.metrics(decision, Sample(shown, Logged(action, reward, propensity)))

    with jax.enable_x64(True):
        metrics = jax.device_get(jax.jit(jax.vmap(row))(action, reward, odds[action]))
    earned = (0.1 + 0.6 * (np.arange(A) == values(shown).argmax())) @ mean
    for name in ("ips", "dr"):
        error = metrics[name].std() / np.sqrt(count)
        assert abs(metrics[name].mean() - earned) < 4.5 * error


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: bandit(personal, A, period=3), "bandit: of must be a problem such as personal"),
        (lambda: bandit(OF, 1, period=3), "bandit: actions must be an integer of at least 2"),
        (lambda: bandit(OF, A), "bandit: period must be given, or epsilon, not both, got None"),
        (lambda: bandit(OF, A, period=3, epsilon=0.1), "bandit: period must be given, or epsilon"),
        (lambda: bandit(OF, A, period=0), "bandit: period must be an integer of at least 1"),
        (lambda: bandit(OF, A, period=2.5), "bandit: period must be an integer"),
        (lambda: bandit(OF, A, epsilon=0.0), r"bandit: epsilon must lie in \(0, 1\], got 0.0"),
        (lambda: bandit(OF, A, epsilon=1.5), r"bandit: epsilon must lie in \(0, 1\], got 1.5"),
        (lambda: bandit(OF, A, epsilon="often"), "bandit: epsilon must be a finite number"),
        (lambda: replay("regression", A), "replay: of must be a problem such as personal"),
        (lambda: replay(OF, 2.0), "replay: actions must be an integer of at least 2"),
        (lambda: replay(OF, A, epsilon=-0.1), r"replay: epsilon must lie in \[0, 1\], got -0.1"),
        (lambda: replay(OF, A, epsilon=np.nan), "replay: epsilon must be a finite number"),
    ],
)
def test_refusals(build, message):
    with pytest.raises(BadParameter, match=message):
        build()


def log(**wrong):
    """A log of five rows, with something wrong in it."""
    right = {"action": np.arange(5) % A, "reward": np.ones(5), "propensity": np.full(5, 0.5)}
    return Logged(**(right | {k: np.asarray(v) for k, v in wrong.items()}))


@pytest.mark.parametrize(
    ("hidden", "message"),
    [
        (log(propensity=[0.5, 0.5, 0, 0.5, 0]), r"each propensity in \(0, 1\], row 2 has 0.0"),
        (log(propensity=[0.5, -0.5, 0.5, 0.5, 0]), r"each propensity .* row 1 has -0.5"),
        (log(propensity=[0.5, 0.5, 0.5, 1.01, 1]), r"each propensity .* row 3 has 1.01"),
        (log(propensity=[0.5, 0.5, 0.5, 0.5, np.nan]), "each propensity .* row 4 has nan"),
        (log(action=[0, 1, 2, 3, A]), "each action 0 to 3, row 4 has 4"),
        (log(action=[0, -1, 2, 3, 0]), "each action 0 to 3, row 1 has -1"),
        (Rewards(np.zeros((5, A))), r"wants \(action, reward, propensity\)"),
    ],
)
def test_a_log_that_cannot_be_learnt_from_is_refused(hidden, message):
    replay(OF, A).check(contexts(5, 5), log())
    with pytest.raises(BadData, match=f"replay: .*{message}"):
        replay(OF, A).check(contexts(5, 5), hidden)


@pytest.mark.parametrize(
    ("shown", "hidden", "message"),
    [
        (contexts(5, 5), Rewards(np.zeros((5, A + 1))), r"bandit: wants 4 actions first.* \(5,\)"),
        (contexts(5, 5), np.zeros((5, A)), "bandit: wants a reward for each action"),
        (contexts(5, 5), Rewards(np.zeros(5)), r"bandit: wants 4 actions first.* shape \(\)"),
        (
            tuple(x[:, :3] for x in contexts(5, 5)),
            Rewards(np.zeros((5, A))),
            r"bandit: wants 4 actions first, the stream has shape \(3, 2\)",
        ),
        (contexts(5, 5)[0], Rewards(np.zeros((5, A))), r"personal: .*the stream has \(2,\)"),
    ],
)
def test_rewards_that_do_not_fit_are_refused(shown, hidden, message):
    bandit(OF, A, period=2).check(contexts(5, 5), Rewards(np.zeros((5, A))))
    with pytest.raises(BadData, match=message):
        bandit(OF, A, period=2).check(shown, hidden)


def test_what_a_bandit_takes_from_its_regression():
    made = bandit(OF, A, period=2)
    assert (made.parameters, made.convex, made.residual) == (OF.parameters, True, OF.residual)
    assert made.form is None  # what is seen depends on what was decided
    assert bandit(logistic(2), A, period=2).residual is None
