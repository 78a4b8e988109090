"""The best models in hindsight serve all runs on a stream, and only those."""

import gc

import numpy as np
import pytest

import mainstem as ms
from mainstem.measure import comparators
from mainstem.measure.newton import Model
from mainstem.measure.solver import minimise
from mainstem.parts import l2_ball

PROBLEM = ms.problems.logistic(features=1, ridge=0.1)


@pytest.fixture
def solved(monkeypatch):
    """The questions that were solved."""
    asked, solve = [], comparators._solved

    def counted(*given):
        asked.append(given)
        return solve(*given)

    monkeypatch.setattr(comparators, "_solved", counted)
    return asked


def written(path, slope):
    rows = [f"{x},{int(slope * x > 0.2)}" for x in np.linspace(-1, 1, 30)]
    path.write_text("\n".join(["x,y", *rows]))
    return ms.streams.csv(path, target="y", classes=True)


def run(stream, step=0.3, problem=PROBLEM):
    return ms.simulate(ms.fedogd(step), problem, stream, steps=30)


def test_another_run_on_the_stream_is_served(solved, tmp_path):
    stream = written(tmp_path / "rows.csv", 1)
    first, second = run(stream).regret("curve"), run(stream, 0.1).regret("curve")
    assert len(solved) == 1
    assert np.array_equal(first.params, second.params)
    run(stream).regret()
    run(stream).regret("curve", radius=5)
    run(stream, problem=ms.problems.logistic(features=1, ridge=0.2)).regret("curve")
    assert len(solved) == 4


def test_another_file_of_that_name_is_not(solved, tmp_path):
    found = [run(written(tmp_path / "rows.csv", slope)).regret().params[0] for slope in (1, -1)]
    assert len(solved) == 2
    assert found[0] > 0.1
    assert found[1] < -0.1


def test_nothing_is_kept_for_a_stream_that_is_gone(tmp_path):
    stream = written(tmp_path / "rows.csv", 1)
    run(stream).regret()
    name = id(stream)
    assert name in comparators._remembered
    del stream
    gc.collect()
    assert name not in comparators._remembered


def test_what_was_found_from_a_run_is_its_own(solved):
    """Without convexity the best model found depends on where the search begins."""
    stream = ms.streams.arrays(np.ones((20, 2)), np.ones(20), clients=2)
    for step in (0.1, 0.2):
        run(stream, step, ms.problems.mlp(2)).regret()
    assert len(solved) == 2


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_a_poor_model_changes_the_way_and_not_the_result(size):
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(50, 4)), draw.integers(0, 2, 50) * 2 - 1

    def loss(w):
        margin = y * (x @ w)
        return np.logaddexp(0, -margin).mean(), -(x.T @ (y / (1 + np.exp(margin)))) / 50

    def hessian(w):
        p = 1 / (1 + np.exp(-x @ w))
        return (x.T * (p * (1 - p))) @ x / 50

    alone = minimise(loss, np.zeros(4), l2_ball(3.0), hessian=hessian)
    helped = minimise(
        loss, np.zeros(4), l2_ball(3.0), hessian=hessian, model=Model(size * np.eye(4))
    )
    assert alone.gap < 1e-8
    assert helped.gap < 1e-8
    assert abs(alone.value - helped.value) <= alone.gap + helped.gap
    assert np.allclose(alone.params, helped.params, atol=1e-4)
