"""Worlds with shared and personal structure, against the numbers they are drawn from."""

import numpy as np
import pytest

from mainstem import problems
from mainstem.errors import BadParameter
from mainstem.streams import linear_bandit, residuals
from tests.streams.replayed import replayed

K, T = 4, 500


def test_labels_are_a_shared_and_an_own_part_and_noise():
    stream = residuals(K, shared=3, own=2, noise=0.5, shared_norm=2.0, own_norm=0.7)
    truth, got = stream.drawn(0), replayed(stream, T)
    x, local = got.shown
    clean = x @ truth.common + np.einsum("tki,ki->tk", local, truth.each)
    noise = (got.hidden - clean) / 0.5
    sure = 4.5 / np.sqrt(T * K)
    assert abs(noise.mean()) < sure
    assert abs(noise.std() - 1) < sure
    for draws in (x, local):
        assert abs(draws.mean()) < sure
        assert abs(draws.std() - 1) < sure
    np.testing.assert_allclose(np.linalg.norm(truth.common), 2.0)
    np.testing.assert_allclose(np.linalg.norm(truth.each, axis=1), 0.7)
    problems.personal(3, 2).check((x[0], local[0]), got.hidden[0])


def test_without_noise_nothing_is_left():
    stream = residuals(K, shared=3, own=2, noise=0, shared_norm=0)
    truth, got = stream.drawn(1), replayed(stream, 20, seed=1)
    clean = np.einsum("tki,ki->tk", got.shown[1], truth.each)
    np.testing.assert_allclose(got.hidden, clean, rtol=1e-12)


@pytest.mark.parametrize("build", [residuals, lambda *a, **s: linear_bandit(*a, actions=2, **s)])
def test_the_truth_is_the_seeds(build):
    stream = build(K, shared=3, own=2)
    one, again, other = stream.drawn(0), stream.drawn(0), stream.drawn(1)
    for mine, same, else_ in zip(one[:2], again[:2], other[:2], strict=True):
        np.testing.assert_array_equal(mine, same)
        assert not np.allclose(mine, else_)
    assert len({*one.each[:, 0]}) == K


def test_a_bandits_means_are_linear_and_lie_in_the_unit_interval():
    stream = linear_bandit(K, actions=5, shared=3, own=2, noise=0.1)
    truth, got = stream.drawn(0), replayed(stream, T)
    x, local = got.shown
    worth = x @ truth.common + np.einsum("tkai,ki->tka", local, truth.each)
    np.testing.assert_allclose(got.hidden.mean, 0.5 + worth / 4, rtol=1e-12)
    assert got.hidden.mean.min() >= 0
    assert got.hidden.mean.max() <= 1
    assert np.abs(x).max() <= 1 / np.sqrt(3)
    assert np.abs(local).max() <= 1 / np.sqrt(2)
    noise = (got.hidden.reward - got.hidden.mean) / 0.1
    assert abs(noise.std() - 1) < 4.5 / np.sqrt(noise.size)
    assert x.shape == (T, K, 5, 3)
    regression = problems.personal(3, 2, intercept=True)
    first = type(got.hidden)(*(x[0] for x in got.hidden))
    problems.bandit(regression, 5, epsilon=0.1).check((x[0], local[0]), first)


def test_the_best_linear_bandit_is_in_the_regressions_reach():
    """With a constant each: shared u / 4 and 1/2, own u_i / 4."""
    stream = linear_bandit(K, actions=3, shared=3, own=2, noise=0)
    truth, got = stream.drawn(0), replayed(stream, 30)
    score = got.shown[0] @ (truth.common / 4) + 0.5
    score += np.einsum("tkai,ki->tka", got.shown[1], truth.each / 4)
    np.testing.assert_allclose(score, got.hidden.reward, rtol=1e-12)


RIGHT = {"clients": 3, "actions": 4, "shared": 2, "own": 2}


@pytest.mark.parametrize("build", [residuals, linear_bandit])
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("clients", 0, "an integer of at least 1, got 0"),
        ("actions", 1, "an integer of at least 2, got 1"),
        ("shared", 0, "an integer of at least 1, got 0"),
        ("own", 1.5, "an integer of at least 1, got 1.5"),
        ("noise", -0.1, "at least 0, got -0.1"),
        ("shared_norm", -1, "at least 0, got -1"),
        ("own_norm", np.inf, "a finite number, got inf"),
    ],
)
def test_refusals(build, name, value, message):
    known = {k: v for k, v in RIGHT.items() if build is linear_bandit or k != "actions"}
    if build is residuals and name == "actions":
        return
    with pytest.raises(BadParameter, match=f"{build.__name__}: {name} must be {message}"):
        build(**(known | {name: value}))
