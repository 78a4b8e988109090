"""Regret and its comparators: against CVXPY, naive evaluation and closed forms."""

import cvxpy as cp
import jax.numpy as jnp
import numpy as np
import pytest

import mainstem as ms
from mainstem import parts
from mainstem.base import Form, Problem
from mainstem.papers import evidence, mitra
from mainstem.problems.raw import Raw
from mainstem.problems.wrapped import Wrapped
from mainstem.value import integer, part, value
from tests.algorithms.table import Losses, losses, regression
from tests.reference import regret as naive
from tests.reference.fedomd import fedomd as loop
from tests.reference.steps import euclidean_box

T, K, D = 30, 4, 3


def _linear(world, steps=T):
    return ms.simulate(ms.fedogd(0.05), world.problem, world.stream, steps=steps, dtype="float64")


def test_ridge_comparator_agrees_with_cvxpy_at_every_prefix():
    world = regression(T, K, D)
    found = _linear(world).regret([5, 17, 30])
    spent = np.cumsum(_linear(world).loss)
    for n, prefix in enumerate((5, 17, 30)):
        w = cp.Variable(D)
        x, y = world.x[:prefix].reshape(-1, D), world.y[:prefix].ravel()
        ridge = prefix * 0.5 * world.ridge * cp.sum_squares(w)
        value = cp.Problem(cp.Minimize(0.5 / K * cp.sum_squares(x @ w - y) + ridge)).solve()
        assert found.values[n] == pytest.approx(spent[prefix - 1] - value, abs=1e-6)
        assert 0 <= found.gaps[n] < 1e-6


def test_regularised_logistic_comparator_agrees_with_cvxpy():
    draw = np.random.default_rng(1)
    x = draw.normal(size=(60, D))
    y = (x[:, 0] + draw.normal(size=60) > 0).astype(np.int32)
    stream = ms.streams.arrays(x, y, clients=6, deal=ms.streams.in_time())
    problem = ms.problems.logistic(D, ridge=0.05, intercept=False)
    run = ms.simulate(ms.fedogd(0.3), problem, stream, steps=10, dtype="float64")
    w = cp.Variable(D)
    signs = 2.0 * y - 1
    loss = cp.sum(cp.logistic(-cp.multiply(signs, x @ w))) / 6 + 10 * 0.025 * cp.sum_squares(w)
    value = cp.Problem(cp.Minimize(loss)).solve()
    found = run.regret()
    assert float(found) == pytest.approx(run.loss.sum() - value, abs=1e-6)
    assert "over everything" in found.statement


def test_box_and_simplex_comparators_agree_with_cvxpy():
    box, simplex = losses(T, K, D), losses(T, K, D, linear=True)
    fedomd = ms.fedomd(0.1, mirror=parts.euclidean(parts.box(-1, 1)))
    problem = box.problem(low=-1, high=1)
    run = ms.simulate(fedomd, problem, box.stream, steps=T, dtype="float64")
    w = cp.Variable(D)
    total = cp.sum([cp.sum_squares(w - a) for a in box.a.reshape(-1, D)]) * 0.5 / K
    value = cp.Problem(cp.Minimize(total), [w >= -1, w <= 1]).solve()
    spent = run.column("collective").sum()
    assert float(run.regret()) == pytest.approx(spent - value, abs=1e-6)
    run = ms.simulate(
        ms.fedomd(0.1, mirror=parts.entropy()),
        simplex.problem(),
        simplex.stream,
        steps=T,
        dtype="float64",
    )
    best = simplex.a.sum(axis=(0, 1)).min() / K
    spent = run.column("collective").sum()
    assert float(run.regret()) == pytest.approx(spent - best, abs=1e-9)


def test_collective_regret_equals_the_naive_evaluation_at_every_prefix():
    world = losses(T, K, 1)
    algorithm = ms.fedomd(0.2, mirror=parts.euclidean(parts.box(-1, 1)), sync=parts.every(4))
    problem = world.problem(low=-1, high=1)
    run = ms.simulate(algorithm, problem, world.stream, steps=T, dtype="float64")
    step = lambda x, g, eta: euclidean_box(x, g, eta, -1, 1)  # noqa: E731
    reference = loop(
        world.gradient,
        np.zeros(1),
        T,
        K,
        step,
        lambda t: 0.2,
        set(range(4, T + 1, 4)),
        lambda t: range(K),
    )

    def best(prefix):
        point = np.clip(world.a[:prefix].mean(axis=(0, 1)), -1, 1)
        return 0.5 * np.sum((point - world.a[:prefix]) ** 2) / K

    expected = naive.collective_regret(reference["models"], world.loss, best)
    assert np.allclose(run.regret("all").values, expected, rtol=0, atol=1e-10)


def test_separable_digits_state_their_ball():
    run = ms.simulate(
        ms.fedogd(0.5), ms.problems.softmax(64, 10), ms.streams.digits(clients=50), steps=30
    )
    found = run.regret(radius=5.0)
    assert found.kind == "global"
    assert "l2 ball of radius 5" in found.statement
    assert "certified" in found.statement
    assert float(found) > 0
    assert np.linalg.norm(found.params) <= 5 * (1 + 1e-9)


def test_networks_are_marked_best_found():
    draw = np.random.default_rng(0)
    images = draw.uniform(size=(40, 10, 10)).astype(np.float32)
    stream = ms.streams.arrays(images, draw.integers(0, 3, 40).astype(np.int32), clients=4)
    run = ms.simulate(ms.fedogd(0.05), ms.problems.cnn(side=10, classes=3), stream, steps=5)
    found = run.regret()
    assert "best found" in found.statement
    assert found.gaps == np.inf


@value
class claimed(Wrapped):
    """A network that is declared convex: then no loss of it is estimated."""

    of: Problem = part(Problem, "mlp(3)")

    convex = True

    def init(self, key):
        return self.of.init(key)

    def decide(self, params, shown, at):
        return self.of.decide(params, shown, at)

    def reveal(self, decision, sample):
        return self.of.reveal(decision, sample)

    def loss(self, params, seen):
        return self.of.loss(params, seen)


def test_the_collective_loss_of_networks_is_sampled_with_its_error():
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(200, 3)), draw.normal(size=200)
    problem, stream = ms.problems.mlp(3, hidden=(4,)), ms.streams.arrays(x, y, clients=20)
    algorithm = ms.fedomd(0.05, sync=parts.every(10))
    run = ms.simulate(algorithm, problem, stream, steps=40, measure=["collective"])
    assert (run.column("collective_error") > 0).all()
    exact = ms.simulate(algorithm, claimed(problem), stream, steps=40, measure=["collective"])
    error = np.sqrt(np.sum(run.column("collective_error") ** 2))
    gap = abs(run.column("collective").sum() - exact.column("collective").sum())
    assert gap < 4 * error
    assert run.regret().error > 0


def test_expected_and_virtual_regret_are_in_closed_form():
    stream = ms.streams.sea_quadratic(clients=5, dimension=2, noise=0.5, spatial=0.3, temporal=0.2)
    problem = ms.problems.quadratic(2)
    algorithm = ms.fedsea(0.1, period=4)
    run = ms.simulate(
        algorithm,
        problem,
        stream,
        steps=40,
        seeds=200,
        dtype="float64",
        measure=["collective", "expected", "virtual", "consensus"],
    )
    expected, collective = run.regret(kind="expected"), run.regret(kind="collective")
    draws = run.column("collective").sum(axis=1) - run.column("expected").sum(axis=1)
    assert abs(draws.mean()) < 4 * draws.std() / np.sqrt(200)  # the same on average
    assert collective.values.shape == (200, 1)
    virtual = run.regret(kind="virtual")
    # a quadratic's excess over its mean model, exactly
    drift = 0.5 * run.column("consensus").sum(axis=1)
    assert np.allclose(expected.values[:, 0] - virtual.values[:, 0], drift, rtol=0, atol=1e-9)


def test_regret_of_own_models_needs_the_collective_loss():
    world = losses(T, K, D)
    run = ms.simulate(
        ms.fedomd(0.1, sync=parts.every(5)), world.problem(), world.stream, steps=T, measure=()
    )
    with pytest.raises(ms.MainstemError, match="collective"):
        run.regret()


@value
class slopes(Raw):
    """Linear losses of a model that may be anything."""

    dimension: int = integer(least=1)

    domain = parts.everything()

    def init(self, key):
        return jnp.zeros(self.dimension)

    def loss(self, params, seen):
        return params @ seen

    def form(self, seen):
        return Form(jnp.asarray(0.0), -seen, jnp.asarray(0.0))


def test_linear_losses_without_bounds_have_no_best_model():
    a = np.random.default_rng(0).normal(size=(T, K, D))
    world = Losses(a, linear=True)
    run = ms.simulate(ms.fedogd(0.1), slopes(D), world.stream, steps=T, dtype="float64")
    assert "l2 ball" in run.regret(radius=2.0).statement  # the stated ball
    with pytest.raises(ms.MainstemError, match="no best model"):
        run.regret("all")
    with pytest.raises(ms.MainstemError, match="at must name at least one step"):
        run.regret([])
    assert float(run.regret(5, radius=2.0)) == float(run.regret([5], radius=2.0))


@pytest.mark.slow  # in CI the same experiment is a published result: tests/papers/test_quick.py
@pytest.mark.parametrize(
    ("size", "fit"), [({"steps": 600, "seeds": 20}, 0.95), ({"steps": 2000, "seeds": 50}, 0.98)]
)
def test_fedomd_experiment_grows_with_tau_and_falling_participation(size, fit):
    def regrets(period, participants=mitra.CLIENTS):
        run = ms.simulate(mitra.algorithm(period, participants), *mitra.world(), **size)
        return run, mitra.regrets(run)

    ends, at = [], np.arange(mitra.FIRST, size["steps"] + 1)
    for run, values in map(regrets, (1, 5, 20, 50)):
        ends.append(values[:, -1].mean())
        assert evidence.fit(np.log, at, values[:, mitra.FIRST - 1 :]) > fit
        assert np.all(values <= run.bound(np.arange(1, values.shape[1] + 1)).value)
    assert ends == sorted(ends)
    by_participants = [regrets(20, n)[1][:, -1].mean() for n in (20, 5, 2)]
    assert by_participants == sorted(by_participants)


def test_file_like_streams_are_replayed_for_the_comparator():
    rows = jnp.asarray(np.random.default_rng(2).normal(size=(T, K, D)))

    def sample(key, t, k):
        x = rows[t - 1, k]
        return x, (x[0] > 0).astype(jnp.int32)

    stream = ms.streams.generated(sample, K, steps=T)
    problem = ms.problems.logistic(D, ridge=0.1)
    run = ms.simulate(ms.fedogd(0.2), problem, stream, steps=T, dtype="float64")
    flat = np.asarray(rows, np.float32).astype(np.float64).reshape(-1, D)
    arrays = ms.streams.arrays(
        flat,
        (flat[:, 0] > 0).astype(np.int32),
        keys=np.tile(np.arange(K), T),
        deal=ms.streams.by_key(),
    )
    same = ms.simulate(ms.fedogd(0.2), problem, arrays, steps=T, dtype="float64")
    assert float(run.regret()) == pytest.approx(float(same.regret()), abs=1e-5)


def test_constants_of_a_problem_serve_both_precisions():
    draw = np.random.default_rng(4)
    stream = ms.streams.arrays(draw.normal(size=(40, 2)), draw.normal(size=40), clients=4)
    problem = ms.problems.random_features(2, count=5, ridge=0.1)
    single = ms.simulate(ms.fedogd(0.1), problem, stream, steps=10)
    double = ms.simulate(ms.fedogd(0.1), problem, stream, steps=10, dtype="float64")
    assert float(single.regret()) == pytest.approx(float(double.regret()), abs=1e-4)


@pytest.mark.parametrize(
    "mirror",
    [
        parts.euclidean(parts.l2_ball(0.4)),
        parts.euclidean(parts.l1_ball(0.4)),
        pytest.param(parts.p_norm(1.5, parts.p_ball(1.5, 0.4)), marks=pytest.mark.slow),
    ],
    ids=lambda mirror: mirror.domain.title,
)
def test_prefixes_at_once_equal_prefixes_one_by_one_on_every_domain(mirror):
    world = losses(T, K, D)
    run = ms.simulate(
        ms.fedomd(0.1, mirror=mirror), world.problem(), world.stream, steps=T, dtype="float64"
    )
    at_once = run.regret([10, 30]).values
    alone = [float(run.regret([10])), float(run.regret([30]))]
    assert np.allclose(at_once, alone, rtol=0, atol=1e-6)


def test_the_words_give_the_gap_of_the_sum():
    problem = ms.problems.logistic(4, ridge=0.1)
    stream = ms.streams.arrays(*classified(60, 4), clients=3)
    found = ms.simulate(ms.fedogd(0.1), problem, stream, steps=200, seeds=2).regret()
    stated = float(found.statement.split("certified within ")[1].rstrip(")"))
    largest = found.gaps[:, -1].max()
    assert largest <= stated <= 1.1 * largest


def classified(rows, features):
    draw = np.random.default_rng(0)
    x = draw.normal(size=(rows, features))
    return x, (x[:, 0] + 0.3 * draw.normal(size=rows) > 0).astype(int)


@pytest.mark.parametrize(
    "algorithm", [ms.fedogd(0.05), ms.ofedavg(0.05, 0.7), ms.ofediq(0.05, 0.7)]
)
@pytest.mark.parametrize(("links", "shared"), [
    (ms.network(up=[0, 1, 2, 3]), True), (ms.network(up=1, down=2), True),
    (ms.network(down=[0, 0, 1, 0]), False),
])  # fmt: skip
def test_an_uplink_delay_alone_leaves_one_model_and_a_global_regret(algorithm, links, shared):
    world = regression(T, K, D)
    settings = {"steps": T, "network": links, "dtype": "float64", "measure": ["consensus"]}
    run = ms.simulate(algorithm, world.problem, world.stream, **settings)
    assert (np.max(run.trace["consensus"]) == 0) == shared
    if not shared:
        with pytest.raises(ms.MainstemError, match="models of their own"):
            run.regret(kind="global")
        return
    spent = np.sum(run.loss)
    best = ms.simulate(ms.fedogd(0.05), world.problem, world.stream, steps=T, dtype="float64")
    assert float(run.regret()) == pytest.approx(spent - np.sum(best.loss) + float(best.regret()))
