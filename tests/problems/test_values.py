"""Every exported problem is a value: comparable, picklable, printed as its call, and a tree of numbers."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mainstem import parts, problems, random
from mainstem.base import At, Batch, Flat, Problem, Sample
from mainstem.errors import BadParameter
from mainstem.problems.bandit import Logged, Rewards
from mainstem.problems.shared_only import shared_only
from tests.problems.slopes import AT


def first(key):
    return {"w": jnp.zeros(3)}


def scores(params, x):
    return x @ params["w"]


def cost(score, y):
    return (score - y) ** 2


MODULE = f"{__name__}."
MADE = {
    "softmax": (
        lambda: problems.softmax(3, 4, ridge=0.1, domain=parts.l2_ball(2)),
        "softmax(features=3, classes=4, ridge=0.1, domain=l2_ball(radius=2.0))",
        [0.1, 2.0],
    ),
    "softmax without ridge": (
        lambda: problems.softmax(3, 4, ridge=0),
        "softmax(features=3, classes=4)",
        [],
    ),
    "logistic": (
        lambda: problems.logistic(3, ridge=0.2, intercept=False),
        "logistic(features=3, ridge=0.2, intercept=False)",
        [0.2],
    ),
    "linear": (lambda: problems.linear(3, ridge=1), "linear(features=3, ridge=1.0)", [1.0]),
    "mlp": (
        lambda: problems.mlp(3, hidden=[4], ridge=0.3),
        "mlp(features=3, hidden=[4], ridge=0.3)",
        [0.3],
    ),
    "cnn": (lambda: problems.cnn(side=10), "cnn(side=10)", []),
    "custom": (
        lambda: problems.custom(first, scores, cost, ridge=0.5),
        f"custom(init={MODULE}first, apply={MODULE}scores, loss={MODULE}cost, ridge=0.5)",
        [0.5],
    ),
    "personal": (
        lambda: problems.personal(2, 1, classes=2, start=([1, 2], np.array([3.0]))),
        "personal(shared=2, own=1, classes=2, start=[[1.0, 2.0], [3.0]])",
        [1.0, 2.0, 3.0],
    ),
    "personal, logistic": (
        lambda: problems.personal(2, 1, "logistic", 2, True),
        "personal(shared=2, own=1, loss='logistic', classes=2, intercept=True)",
        [],
    ),
    "random_features": (
        lambda: problems.random_features(3, count=5, bandwidth=2, ridge=0.1, seed=7),
        "random_features(features=3, count=5, bandwidth=2.0, ridge=0.1, seed=7)",
        [2.0, 0.1],
    ),
    "quadratic": (
        lambda: problems.quadratic(3, curvature=2, low=-1, high=4),
        "quadratic(dimension=3, curvature=2.0, low=-1.0, high=4.0)",
        [2.0, -1.0, 4.0],
    ),
    "experts": (lambda: problems.experts(3), "experts(count=3)", []),
    "bandit": (
        lambda: problems.bandit(problems.linear(3, ridge=0.1), 4, epsilon=0.5),
        "bandit(of=linear(features=3, ridge=0.1), actions=4, epsilon=0.5)",
        [0.1, 0.5],
    ),
    "bandit, by turns": (
        lambda: problems.bandit(problems.personal(2, 1), 4, period=5),
        "bandit(of=personal(shared=2, own=1), actions=4, period=5)",
        [],
    ),
    "replay": (
        lambda: problems.replay(problems.linear(3), 4, epsilon=0.25),
        "replay(of=linear(features=3), actions=4, epsilon=0.25)",
        [0.25],
    ),
    "batched": (
        lambda: problems.batched(problems.logistic(3, ridge=0.1)),
        "batched(of=logistic(features=3, ridge=0.1))",
        [0.1],
    ),
    "shared_only": (
        lambda: shared_only(problems.personal(2, 1)),
        "shared_only(of=personal(shared=2, own=1))",
        [],
    ),
}


def sample_for(case, rng):
    """A sample of the problem's kind."""
    x, number, label = rng.normal(size=3), rng.normal(), np.int32(rng.integers(0, 2))
    halves = (x[:2], x[2:])
    contexts = rng.normal(size=(4, 3))
    return {
        "linear": Sample(x, number),
        "mlp": Sample(x, number),
        "custom": Sample(x, number),
        "random_features": Sample(x, number),
        "cnn": Sample(rng.random((10, 10)), label),
        "personal": Sample(halves, label),
        "personal, logistic": Sample(halves, label),
        "shared_only": Sample(halves, number),
        "quadratic": Sample((), x),
        "experts": Sample((), x),
        "bandit": Sample(contexts, Rewards(rng.normal(size=4))),
        "bandit, by turns": Sample(
            (contexts[:, :2], contexts[:, 2:]), Rewards(rng.normal(size=4), rng.normal(size=4))
        ),
        "replay": Sample(contexts, Logged(np.int32(2), number, 0.5)),
        "batched": Sample(rng.normal(size=(5, 3)), np.int32([0, 1, 0, 1, 1]), np.int32(3)),
    }.get(case, Sample(x, label))


def test_every_exported_problem_is_here():
    assert {case.split(",")[0].split(" ")[0] for case in MADE} >= {*problems.__all__}


@pytest.mark.parametrize("case", MADE)
def test_a_problem_is_a_value(case):
    make, text, numbers = MADE[case]
    problem, twin = make(), make()
    assert problem is not twin
    assert problem == twin
    assert hash(problem) == hash(twin)
    assert pickle.loads(pickle.dumps(problem)) == problem
    assert repr(problem) == text
    leaves = [float(x) for leaf in jax.tree.leaves(problem) for x in np.ravel(leaf)]
    assert leaves == numbers
    again = jax.tree.unflatten(jax.tree.structure(twin), jax.tree.leaves(problem))
    assert again == problem
    assert isinstance(problem, Problem)


def evaluated(problem, w, sample):
    """All that a problem does on a device, from one sample."""
    vectors = Flat(problem)
    at = AT._replace(t=jnp.int32(10))
    seen, loss, metrics = vectors.one(w, sample, at)
    form = None if problem.form is None else problem.form(seen)
    row = None if problem.linear is None else problem.linear.features(seen)
    informative = None if problem.informative is None else problem.informative(seen)
    moved, first = problem.domain.project(w), vectors.init(random.root(1))
    slope = vectors.gradient(w, seen)
    return loss, slope, metrics, form, row, informative, moved, first, problem.curvature


@pytest.mark.parametrize("case", MADE)
def test_a_traced_problem_is_the_same_problem(case):
    problem, rng = MADE[case][0](), np.random.default_rng(0)
    with jax.enable_x64(True):
        w, sample = 0.3 * rng.normal(size=problem.parameters), sample_for(case, rng)
        known = jax.jit(lambda w, sample: evaluated(problem, w, sample))(w, sample)
        traced = jax.jit(evaluated)(problem, w, sample)
    one, other = jax.tree.flatten(known), jax.tree.flatten(traced)
    assert one[1] == other[1]
    for a, b in zip(one[0], other[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_one_program_serves_every_ridge_and_none_costs_nothing():
    traces = []

    @jax.jit
    def loss(problem, w, seen):
        traces.append(problem)
        return problem.loss(w, seen)

    w, seen = np.ones(3, np.float32), Sample(np.ones(3, np.float32), np.float32(1))
    values = [loss(problems.linear(3, r, intercept=False), w, seen) for r in (0.1, 0.2, 0)]
    np.testing.assert_allclose(values, [2.15, 2.3, 2.0], rtol=1e-6)
    assert len(traces) == 2
    assert problems.linear(3, 0).ridge is None
    assert problems.linear(3, 0).curvature == 0


def test_a_changed_field_is_checked_like_a_new_one():
    assert problems.softmax(3, 2).replace(ridge=0.1).curvature == 0.1
    problem = problems.personal(2, 1, start=([1, 2], [3]))
    assert problem.replace(classes=2).start == problem.start
    with pytest.raises(BadParameter, match="softmax: ridge must be at least 0, got -1"):
        problems.softmax(3, 2).replace(ridge=-1)
    with pytest.raises(BadParameter, match="start must be a pair of vectors"):
        problem.replace(own=2)


def test_shared_only_is_the_pair_with_a_zero_own_part():
    of = problems.personal(2, 1, classes=2, intercept=True)
    problem, rng = shared_only(of), np.random.default_rng(0)
    sample = Sample((rng.normal(size=2), rng.normal(size=1)), np.int32(1))
    with jax.enable_x64(True):
        w = rng.normal(size=3)
        pair = Flat(of).unravel(np.concatenate([w, np.zeros(2)]))
        assert problem.loss(w, sample) == of.loss(pair, sample)
        assert problem.decide(w, sample.shown, AT) == of.decide(pair, sample.shown, AT)
        assert problem.metrics(jnp.float64(1), sample) == of.metrics(jnp.float64(1), sample)
    assert (problem.parameters, problem.personal) == (3, False)
    assert (problem.shape, problem.classes, problem.convex) == (((2,), (1,)), 2, True)
    assert problem.form is problem.vectorized is problem.linear is problem.residual is None
    with pytest.raises(BadParameter, match="shared_only: of must have an own part, got linear"):
        shared_only(problems.linear(3))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: problems.custom(1, scores, cost), "custom: init must be a function, got 1"),
        (lambda: problems.custom(first, 2, cost), "custom: apply must be a function, got 2"),
        (lambda: problems.custom(first, scores, 3), "custom: loss must be a function, got 3"),
        (lambda: problems.custom(first, scores, cost, 1), "custom: classes must be an integer"),
        (lambda: problems.custom(first, scores, cost, ridge=-1), "custom: ridge must be at least"),
        (lambda: problems.mlp(3, hidden=3), "mlp: hidden must be a list of widths, got 3"),
        (lambda: problems.mlp(3, hidden=[0]), "mlp: hidden must be an integer of at least 1"),
        (lambda: problems.quadratic(low=1), "quadratic: low and high must be given together"),
        (lambda: problems.quadratic(low=3, high=1), "high must be above low = 3.0, got 1.0"),
        (lambda: problems.softmax(3, 2, domain=3), "softmax: domain must be a domain such as l2_"),
        (lambda: problems.random_features(3, bandwidth=0), "bandwidth must be above 0, got 0"),
    ],
)
def test_refusals(build, message):
    with pytest.raises(BadParameter, match=message):
        build()


def test_batched_without_a_count_needs_no_count():
    problem = problems.batched(problems.linear(2))
    seen = problem.reveal(jnp.zeros(3), Sample(np.ones((3, 2)), np.ones(3)))
    assert isinstance(seen, Batch)
    assert problem.init(random.root(0)).shape == (3,)
    assert problem.decide(np.zeros(3), np.ones((3, 2)), At(1, 0, random.root(0))).shape == (3,)
