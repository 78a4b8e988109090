"""Random Fourier features."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mainstem.problems import random_features
from tests.problems.slopes import AT, check_form, check_gradient, draw


def kernel_error(count, bandwidth):
    """The largest error of z(x)'z(y) as exp(-|x - y|^2 / (2 bandwidth^2)) over pairs of points.

    The score is linear in the model, so its gradient at any model is z(x).
    """
    problem = random_features(3, count=count, bandwidth=bandwidth, seed=1)
    points = np.random.default_rng(0).normal(size=(30, 3))
    with jax.enable_x64(True):
        score = jax.vmap(lambda x: jax.grad(problem.decide)(jnp.zeros(count), x, AT))
        z = np.asarray(jax.jit(score)(points))
    distance = np.sum((points[:, None] - points[None]) ** 2, axis=2)
    return np.abs(z @ z.T - np.exp(-distance / (2 * bandwidth**2))).max()


@pytest.mark.parametrize("bandwidth", [0.7, 2.0])
def test_inner_products_approximate_the_gaussian_kernel(bandwidth):
    """The error of n features falls like 1 / sqrt(n): each product is a mean of n bounded terms."""
    few, more, many = (kernel_error(count, bandwidth) for count in (50, 800, 12_800))
    assert many < more < few
    assert many < 5 / np.sqrt(12_800)


@pytest.mark.parametrize("ridge", [0.0, 0.2])
def test_gradient_and_form(ridge):
    problem = random_features(3, count=8, ridge=ridge)
    check_gradient(problem, draw(3))
    check_form(problem, draw(3))


def test_seed_draws_the_features():
    x = draw(3).shown
    w = np.ones(8, np.float32)
    same, again, other = (random_features(3, count=8, seed=s).decide(w, x, AT) for s in (0, 0, 1))
    assert float(same) == float(again)
    assert float(same) != float(other)


def test_size():
    assert random_features(6, count=50).parameters == 50
    assert random_features(6, ridge=0.1).curvature == 0.1
    assert random_features(6).convex
