"""Any model: three functions make a problem."""

import jax
import numpy as np
import optax
from flax import linen as nn

import mainstem as ms
from mainstem.problems import custom, linear
from tests.problems.slopes import check_gradient, draw


def run(problem, stream, **settings):
    return ms.simulate(ms.fedogd(step=0.5), problem, stream, steps=12, progress=False, **settings)


def test_a_flax_model_drops_in_unchanged_and_does_what_ours_does():
    """A dense layer that starts at zero is multinomial logistic regression."""
    net = nn.Dense(10, kernel_init=nn.initializers.zeros)
    flax = custom(
        lambda key: net.init(key, np.zeros(64)),
        net.apply,
        optax.losses.softmax_cross_entropy_with_integer_labels,
        classes=10,
    )
    own = ms.problems.softmax(features=64, classes=10)
    stream = ms.streams.digits(clients=8)
    theirs, ours = run(flax, stream, dtype="float64"), run(own, stream, dtype="float64")
    assert flax.parameters == own.parameters == 650
    np.testing.assert_allclose(theirs.loss, ours.loss, rtol=1e-10)
    np.testing.assert_array_equal(theirs.accuracy, ours.accuracy)
    assert ours.loss[-1] < ours.loss[0]


def test_a_deeper_flax_model_learns():
    net = nn.Sequential([nn.Dense(16), nn.relu, nn.Dense(10)])
    problem = custom(
        lambda key: net.init(key, np.zeros(64)),
        net.apply,
        optax.losses.softmax_cross_entropy_with_integer_labels,
        classes=10,
    )
    assert problem.parameters == 65 * 16 + 17 * 10
    losses = run(problem, ms.streams.digits(clients=50)).loss
    assert np.isfinite(losses).all()
    assert losses[-3:].mean() < losses[:3].mean()


def test_ridge_counts_every_leaf_and_nothing_is_assumed():
    problem = custom(
        lambda key: {"w": np.zeros(3), "b": np.zeros(1)},
        lambda params, x: x @ params["w"] + params["b"][0],
        lambda score, y: 0.5 * (score - y) ** 2,
        ridge=0.3,
    )
    seen = draw(3)
    w = np.random.default_rng(1).normal(size=4)
    with jax.enable_x64(True):
        loss = problem.loss({"w": w[:3], "b": w[3:]}, seen)
        expected = linear(3, ridge=0.3).loss(w, seen)
    np.testing.assert_allclose(loss, expected, rtol=1e-13)
    check_gradient(problem, seen)
    assert not problem.convex
    assert problem.curvature == 0
    assert problem.form is None
