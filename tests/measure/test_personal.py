"""The jointly best shared and own models against CVXPY, and a certificate that is never wrong."""

import cvxpy as cp
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mainstem as ms
from mainstem import parts, problems, streams
from mainstem.base import constant
from mainstem.errors import BadData
from mainstem.measure.personal_hindsight import Sums, _eliminated, best_pair
from mainstem.measure.question import Question
from mainstem.spec import name_of

TIGHT = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


class World:
    """T samples of K clients with d shared and o own features; not all clients see all of them."""

    def __init__(self, T, K, d=2, o=2, seed=0, labels=False):
        rng = np.random.default_rng(seed)
        self.x, self.local = rng.normal(size=(T, K, d)), rng.normal(size=(T, K, o))
        own = rng.normal(size=(K, o))
        self.y = self.x @ rng.normal(size=d) + np.sum(self.local * own, axis=2)
        self.y += 0.5 * rng.normal(size=(T, K))
        if labels:
            self.y = (self.y > 0).astype(np.int32)
        self.present = rng.uniform(size=(T, K)) < 0.7
        self.present[:, 0] = False  # one client never sees anything
        self.weights = rng.uniform(0.2, 3, size=K)
        self.weights[-1] = 0  # and one does not count

    @property
    def stream(self):
        def sample(key, t, k):
            shown = constant(self.x)[t - 1, k], constant(self.local)[t - 1, k]
            labels = jnp.asarray(self.y) if self.y.dtype == np.int32 else constant(self.y)
            return shown, labels[t - 1, k], jnp.asarray(self.present)[t - 1, k].astype(int)

        return streams.generated(sample, self.y.shape[1], steps=len(self.y))

    def oracle(self, steps, weights, radius=None):
        """The minimum over all models of the sum over steps of the weighted mean over clients."""
        K = self.y.shape[1]
        shared = cp.Variable(self.x.shape[2])
        owns = [cp.Variable(self.local.shape[2]) for _ in range(K)]
        total = 0
        for k in range(K):
            here = np.flatnonzero(self.present[:steps, k])
            if not here.size or weights[k] == 0:
                continue
            score = self.x[here, k] @ shared + self.local[here, k] @ owns[k]
            y = self.y[here, k]
            if y.dtype == np.int32:
                paid = cp.sum(cp.logistic(cp.multiply(1 - 2 * y, score)))
            else:
                paid = cp.sum_squares(score - y)
            total = total + weights[k] / K * paid
        inside = [] if radius is None else [cp.norm(w, 2) <= radius for w in (shared, *owns)]
        return cp.Problem(cp.Minimize(total), inside).solve(solver=cp.CLARABEL, **TIGHT)

    def question(self, domain=None, radius=10.0, **kind):
        problem = problems.personal(self.x.shape[2], self.local.shape[2], **kind)
        everywhere = parts.everything() if domain is None else domain
        start = np.zeros(problem.parameters)
        return Question(problem, self.stream, everywhere, 0, radius, start)


def agrees(found, oracles):
    for value, gap, oracle in zip(found.values, found.gaps, oracles, strict=True):
        assert abs(value - oracle) <= 1e-6 * max(1.0, oracle)
        assert value - oracle <= gap + 1e-8 * max(1.0, oracle)  # CVXPY's own error
        assert gap <= 1e-6 * max(1.0, oracle)


WORLDS = {"many clients": World(30, 12), "few samples": World(4, 3, d=3, o=2, seed=1)}


# at step 2 there are fewer samples than parameters, and many models fit
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("name", WORLDS)
def test_squared_losses_everywhere(name, weighted):
    world = WORLDS[name]
    prefixes, weights = [2, len(world.y)], world.weights if weighted else None
    found = best_pair(world.question(), prefixes, weights)
    counted = world.weights if weighted else np.ones_like(world.weights)
    agrees(found, [world.oracle(t, counted) for t in prefixes])
    assert found.statement.startswith("best shared and own models over everything (certified")


@pytest.mark.parametrize("radius", [0.4, 50.0])  # active, and inactive
def test_squared_losses_in_balls(radius):
    world = World(20, 5, seed=2)
    found = best_pair(world.question(parts.l2_ball(radius)), [20], world.weights)
    agrees(found, [world.oracle(20, world.weights, radius)])
    assert f"l2 balls of radius {radius:g}, for the shared and each own model" in found.statement


@pytest.mark.parametrize("domain", [parts.l2_ball(2.0), None])
def test_logistic_losses_in_balls(domain):
    """Without a domain it is the stated ball: separable losses have no minimiser."""
    world = World(20, 5, seed=3, labels=True)
    question = world.question(domain, radius=2.0, loss="logistic", classes=2)
    agrees(best_pair(question, [20], world.weights), [world.oracle(20, world.weights, 2.0)])


def test_a_runs_personal_regret_is_its_weighted_losses_less_that():
    """Eq. (1) of Agarwal et al. 2020: lambda_i = T / N_i for who is there N_i times."""
    world = World(24, 6, seed=4)
    weights = 24 / np.maximum(world.present.sum(axis=0), 1)
    problem = problems.personal(2, 2)
    run = ms.simulate(
        ms.independent(0.05),
        problem,
        world.stream,
        steps=24,
        dtype="float64",
        weights=weights,
        progress=False,
    )
    pairs = np.zeros((6, 4))
    spent = []
    for t in range(24):
        x = np.concatenate([world.x[t], world.local[t]], axis=1)
        off = np.sum(x * pairs, axis=1) - world.y[t]
        spent.append(np.mean(weights * world.present[t] * off**2))
        pairs = pairs - 0.05 * np.where(world.present[t], 2 * off, 0)[:, None] * x
    np.testing.assert_allclose(run.column("weighted"), spent, rtol=1e-10, atol=1e-12)
    regret = run.regret(at=[10, 24])
    assert regret.kind == "personal"
    for n, t in enumerate((10, 24)):
        oracle = world.oracle(t, weights)
        assert regret.values[n] == pytest.approx(sum(spent[:t]) - oracle, abs=1e-6)


@pytest.mark.parametrize("problem", [problems.linear(3, intercept=False), problems.quadratic(3)])
def test_without_an_own_part_the_best_pair_is_the_best_model(problem):
    """A matrix for each form, or a number."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    rows = streams.arrays(x, y, clients=4)
    if name_of(problem) == "quadratic":
        rows = streams.generated(lambda key, t, k: ((), constant(x)[4 * (t - 1) + k]), clients=4)
    question = Question(problem, rows, parts.everything(), 0, 10.0, np.zeros(3))
    found = best_pair(question, [10], None)
    if name_of(problem) == "quadratic":
        least = np.sum((x - x.mean(axis=0)) ** 2) / 2 / 4  # a mean over four clients
        np.testing.assert_allclose(found.params, x.mean(axis=0), atol=1e-12)
    else:
        weights = np.linalg.lstsq(x, y)[0]
        least = np.sum((x @ weights - y) ** 2) / 2 / 4
        np.testing.assert_allclose(found.params, weights, atol=1e-10)
    assert found.values[0] == pytest.approx(least, abs=1e-10)


def test_what_has_no_sure_best_is_refused():
    question = World(4, 3).question(parts.box(-1, 1))
    with pytest.raises(BadData, match="everything or an l2 ball for each model"):
        best_pair(question, [4], None)
    with pytest.raises(BadData, match="personal regret wants convex losses"):
        best_pair(question._replace(problem=problems.mlp(3)), [4], None)


def summed(x, y, shares):
    """Forms of (y - x'w)^2, client by client."""
    matrix, vector = np.einsum("tki,tkj->kij", x, x), np.einsum("tk,tki->ki", y, x)
    return Sums(2 * matrix, 2 * vector, np.einsum("tk,tk->k", y, y)), np.asarray(shares, float)


cases = given(
    seed=st.integers(0, 2**32 - 1),
    size=st.tuples(*(st.integers(1, n) for n in (6, 8, 4, 4))),
    scale=st.sampled_from([1e-3, 1.0, 1e3]),
    twins=st.booleans(),
)


@settings(max_examples=50, deadline=None, derandomize=True)
@cases
def test_what_fits_exactly_costs_nothing_within_the_certificate(seed, size, scale, twins):
    """Whole numbers: the planted models fit without rounding, so the minimum is 0 exactly.

    Singular where samples are few, more clients than parameters, own features that are the
    shared ones once more, clients that see nothing, and clients that do not count.
    """
    rng = np.random.default_rng(seed)
    T, K, d, o = size
    x = rng.integers(-3, 4, size=(T, K, d + o)).astype(float)
    if twins:
        x[:, :, d:] = x[:, :, np.arange(o) % d]
    x *= rng.uniform(size=(T, K, 1)) < 0.8
    planted = np.concatenate(
        [np.tile(rng.integers(-5, 6, size=d), (K, 1)), rng.integers(-5, 6, size=(K, o))], axis=1
    )
    y = scale * np.einsum("tki,ki->tk", x, planted)
    shares = rng.integers(0, 3, size=K) / 2
    found = _eliminated(*summed(x, y, shares), d, T)
    assert abs(found.value) <= found.gap
    assert found.gap <= 1e-7 * max(1.0, shares @ np.sum(y**2, axis=0))


@settings(max_examples=50, deadline=None, derandomize=True)
@cases
def test_no_rival_beats_the_certificate(seed, size, scale, twins):
    """Rivals: the least-squares fit of the whole joint problem, and points around it."""
    rng = np.random.default_rng(seed)
    T, K, d, o = size
    x, y = rng.normal(size=(T, K, d + o)), scale * rng.normal(size=(T, K))
    if twins:
        x[:, :, d:] = x[:, :, np.arange(o) % d]
    shares = rng.uniform(size=K)
    found = _eliminated(*summed(x, y, shares), d, T)
    rows = np.zeros((T, K, d + K * o))
    rows[:, :, :d] = x[:, :, :d]
    for k in range(K):
        rows[:, k, d + k * o : d + (k + 1) * o] = x[:, k, d:]
    root = np.sqrt(shares)[None, :]
    A, b = (root[..., None] * rows).reshape(T * K, -1), (root * y).ravel()
    best = np.linalg.lstsq(A, b)[0]
    rivals = best + 1e-4 * scale * rng.normal(size=(10, best.size)) * np.arange(10)[:, None]
    least = np.min(np.sum((rivals @ A.T - b) ** 2, axis=1))
    rounding = 1e-14 * (b @ b)  # of the rival's own value
    assert found.value - least <= found.gap + rounding
    assert least - found.value <= found.gap + rounding
