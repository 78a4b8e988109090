"""FedRes.ERM with stored samples: every model is the certified best of its side."""

import cvxpy as cp
import jax
import numpy as np
import pytest

import mainstem as ms
from mainstem import problems
from mainstem.engines.simulate import program
from tests.algorithms.table import tabled

T, K, RADIUS = 15, 3, 2.0
PROBLEM = problems.personal(2, 2, loss="logistic", classes=2)


def world():
    """Labels of noisy shared and own lines, xg[t, k], xl[t, k], y[t, k] in {0, 1}; some see nothing."""
    rng = np.random.default_rng(0)
    xg, xl = rng.normal(size=(T, K, 2)), rng.normal(size=(T, K, 2))
    score = xg @ [1.0, -1.0] + np.einsum("tki,ki->tk", xl, rng.normal(size=(K, 2)))
    y = (score + rng.logistic(size=(T, K)) > 0).astype(float)
    return xg, xl, y, rng.uniform(size=(T, K)) < 0.8


XG, XL, Y, HERE = world()


STREAM = tabled(((XG, XL), Y.astype(np.int32), HERE.astype(np.int32)))


def simulated(algorithm, **settings):
    chosen = {"steps": T, "dtype": "float64", "progress": False} | settings
    return ms.simulate(algorithm, PROBLEM, STREAM, **chosen)


def states(monkeypatch, algorithm):
    """The states after each step."""
    after_steps, advance = [], program.Program.advance

    def noted(self, *given):
        state, rows = advance(self, *given)
        after_steps.append(jax.tree.map(np.array, state))  # the engine goes on with its own
        return state, rows

    with monkeypatch.context() as patch:
        patch.setattr(program.Program, "advance", noted)
        simulated(algorithm, chunk=1)
    return after_steps


def proven(w, x, shift, y):
    """The mean loss at w, and how far above the minimum in the ball it can be (Frank-Wolfe)."""
    signs = 2 * y - 1
    margins = signs * (x @ w + shift)
    slope = -(x * (signs / (1 + np.exp(margins)))[:, None]).mean(axis=0)
    return np.mean(np.logaddexp(0, -margins)), slope @ w + RADIUS * np.linalg.norm(slope)


def best(x, shift, y):
    w = cp.Variable(2)
    losses = cp.logistic(cp.multiply(1 - 2 * y, x @ w + shift))
    oracle = cp.Problem(cp.Minimize(cp.sum(losses) / len(y)), [cp.norm(w, 2) <= RADIUS])
    return oracle.solve(solver=cp.CLARABEL)


def test_every_server_and_own_model_is_the_best_on_all_samples_so_far(monkeypatch):
    """The server's against the own models that were sent, a client's against the new broadcast."""
    sent = np.zeros((K, 2))  # the own models that came with the newest samples
    after = states(monkeypatch, ms.fedres_erm(radius=RADIUS, capacity=T))
    assert len(after) == T
    owns = np.zeros((K, 2))
    for t, state in enumerate(after):
        sent = np.where(HERE[t][:, None], owns, sent)
        here = HERE[: t + 1]
        shift = np.einsum("tki,ki->tk", XL[: t + 1], sent)[here]
        x, y = XG[: t + 1][here], Y[: t + 1][here]
        shared, owns = np.asarray(state.server.params), np.asarray(state.clients.own)
        value, gap = proven(shared, x, shift, y)
        assert np.linalg.norm(shared) <= RADIUS * (1 + 1e-12)
        assert gap <= 1e-10
        if t % 5 == 4:
            assert value == pytest.approx(best(x, shift, y), abs=1e-8)
        for k in range(K):
            mine = HERE[: t + 1, k]
            if mine.any():
                given = XL[: t + 1, k][mine], XG[: t + 1, k][mine] @ shared, Y[: t + 1, k][mine]
                assert proven(owns[k], *given)[1] <= 1e-10
    np.testing.assert_array_equal(after[-1].server.memory.count, HERE.sum(axis=0))


def test_memory_that_would_not_do_is_refused():
    with pytest.raises(
        ms.MainstemError, match="capacity must be 15: the losses are not quadratic, got"
    ):
        simulated(ms.fedres_erm(radius=RADIUS))
    for build in (ms.fedres_erm, ms.fictitious_play):
        with pytest.raises(
            ms.MainstemError, match="capacity must be at least 15, the steps of the run"
        ):
            simulated(build(radius=RADIUS, capacity=T - 1))
    with pytest.raises(ms.MainstemError, match="radius must be given where samples are stored"):
        ms.fedres_erm(capacity=T)
