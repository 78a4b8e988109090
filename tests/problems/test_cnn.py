"""The convolutional network."""

import jax
import numpy as np
import pytest

from mainstem import random
from mainstem.base import SEVERAL, At, Flat, Sample
from mainstem.problems import cnn
from tests.problems.slopes import check_gradient

SIDE = 10  # the smallest that two convolutions and poolings leave something of


def images(count, seed=0, classes=3):
    rng = np.random.default_rng(seed)
    return Sample(rng.random((count, SIDE, SIDE)), rng.integers(0, classes, count, dtype=np.int32))


def xlas_scores(params, pictures):
    """The same network from XLA's convolution and reduce_window, in the order of the paper."""
    x = pictures[..., None]
    for layer in (params["first"], params["second"]):
        names = ("NHWC", "HWIO", "NHWC")
        x = jax.lax.conv_general_dilated(
            x, layer["weights"], (1, 1), "VALID", dimension_numbers=names
        )
        x = jax.nn.relu(x + layer["bias"])
        x = jax.lax.reduce_window(x, -np.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return x.reshape(len(x), -1) @ params["last"]["weights"] + params["last"]["bias"]


@pytest.fixture(scope="module")
def params():
    with jax.enable_x64(True):
        vectors = Flat(cnn(SIDE, 3))
        shift = 0.1 * np.random.default_rng(1).normal(size=cnn(SIDE, 3).parameters)  # biases too
        return jax.device_get(vectors.unravel(jax.jit(vectors.init)(random.root(1)) + shift))


def test_size_is_the_papers():
    assert cnn().parameters == 34826
    assert cnn().parameters == 9 * 32 + 32 + 9 * 32 * 64 + 64 + 25 * 64 * 10 + 10
    assert cnn(SIDE, 3).parameters == 9 * 32 + 32 + 9 * 32 * 64 + 64 + 64 * 3 + 3


def test_scores_are_those_of_convolution_relu_pool(params):
    """Pooling before the ReLU is the same, and a quarter of the work."""
    problem, many = cnn(SIDE, 3), images(4)
    with jax.enable_x64(True):
        ours = jax.jit(jax.vmap(lambda image: problem.decide(params, image, None)))(many.shown)
        np.testing.assert_allclose(ours, jax.jit(xlas_scores)(params, many.shown), atol=1e-10)


def test_gradient_at_a_few_coordinates():
    problem, many = cnn(SIDE, 3), images(1)
    sample = Sample(many.shown[0], many.hidden[0])
    rng = np.random.default_rng(0)
    spans = (
        (0, 320),
        (320, 515),
        (515, problem.parameters),
    )  # the first, the last and the second layer
    chosen = np.concatenate([rng.choice(np.arange(*span), 8) for span in spans])
    gradient = check_gradient(problem, sample, coordinates=chosen, spread=0.1)
    assert np.count_nonzero(gradient) >= 12


def test_vectorized_is_one_by_one(params):
    problem, many = cnn(SIDE, 3), images(6)
    at = At(np.int32(1), np.arange(6), np.zeros((6, 2), np.uint32))
    with jax.enable_x64(True):
        vectors = Flat(problem)
        alone = jax.vmap(Flat(problem).face, in_axes=(None, 0, SEVERAL))
        w = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(params)])
        ours, theirs = jax.jit(vectors.face_many)(w, many, at), jax.jit(alone)(w, many, at)
    np.testing.assert_array_equal(ours.seen.shown, many.shown)
    np.testing.assert_allclose(ours.loss, theirs.loss, rtol=1e-12)
    np.testing.assert_array_equal(ours.metrics["correct"], theirs.metrics["correct"])
    assert ours.informative is theirs.informative is None  # all of it is worth learning


def test_bfloat16_is_nearly_the_same_network(params):
    """8 bits of mantissa: a relative error of about 2^-8 in each layer; gradients come back in the run's dtype."""
    samples = images(4, seed=2)
    flat, _ = jax.flatten_util.ravel_pytree(params)
    params, at = flat.astype(np.float32), At(1, np.arange(4), np.zeros((4, 2), np.uint32))
    samples = samples._replace(shown=samples.shown.astype(np.float32))

    def found(problem):
        vectors = Flat(problem)
        mean = lambda params: vectors.many(params, samples, at)[1].mean()  # noqa: E731
        return jax.jit(jax.value_and_grad(mean))(params)

    (full, slope), (short, near) = found(cnn(SIDE, 3)), found(cnn(SIDE, 3, precision="bfloat16"))
    assert near.dtype == slope.dtype == np.float32
    assert 0 < abs(short - full) < 0.02 * full
    assert 0 < np.linalg.norm(near - slope) < 0.05 * np.linalg.norm(slope)
