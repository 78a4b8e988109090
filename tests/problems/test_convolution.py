"""The convolution against XLA's own, in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mainstem.problems.convolution import convolve, convolve_and_pool


def xlas(images, kernel):
    names = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(images, kernel, (1, 1), "VALID", dimension_numbers=names)


def world(count, seed=0):
    rng = np.random.default_rng(seed)
    images, kernel = rng.normal(size=(count, 6, 7, 2)), rng.normal(size=(3, 3, 2, 3))
    return images, kernel, rng.normal(size=(count, 4, 5, 3))


def both_ways(convolution):
    def run(images, kernel, slope):
        out, back = jax.vjp(convolution, images, kernel)
        return out, back(slope)

    return run


def close(actual, expected):
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-10)


@pytest.mark.parametrize("count", [1, 67, 70])
def test_forwards_and_both_gradients(count):
    """Counts that fit the blocks and counts that do not (67 is a prime above the block)."""
    with jax.enable_x64(True):
        images, kernel, slope = world(count)
        close(
            jax.jit(both_ways(convolve))(images, kernel, slope),
            both_ways(xlas)(images, kernel, slope),
        )


def test_a_kernel_for_each_client():
    """Under vmap over kernels: what a client's own gradient needs."""

    def of_one(convolution):
        return lambda images, kernel: jnp.sum(jnp.sin(convolution(images, kernel)))

    with jax.enable_x64(True):
        images = np.stack([world(4, seed)[0] for seed in range(3)])
        kernels = np.stack([world(4, seed)[1] for seed in range(3)])
        actual, expected = (
            jax.jit(jax.vmap(jax.value_and_grad(of_one(each), argnums=(0, 1))))(images, kernels)
            for each in (convolve, xlas)
        )
        close(actual, expected)


def test_compiled_equals_eager():
    with jax.enable_x64(True):
        images, kernel, _ = world(5)
        close(jax.jit(convolve)(images, kernel), convolve(images, kernel))


@pytest.mark.parametrize(("rows", "columns"), [(8, 10), (7, 9), (4, 5)])
def test_pooling_takes_the_largest_of_each_window(rows, columns):
    draw = np.random.default_rng(0)
    images = draw.normal(size=(3, rows, columns, 2))
    kernel = draw.normal(size=(3, 3, 2, 4))
    with jax.enable_x64(True):
        whole = np.asarray(xlas(images, kernel))
        found = convolve_and_pool(jnp.asarray(images), jnp.asarray(kernel))
    expected = np.empty((3, (rows - 2) // 2, (columns - 2) // 2, 4))
    for i in range(expected.shape[1]):
        for j in range(expected.shape[2]):
            window = whole[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
            expected[:, i, j] = window.max(axis=(1, 2))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
