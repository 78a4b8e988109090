"""FedOGD and OFedIQ with the CNN and the MLP in bare JAX: the straightforward program, all steps in one scan.

Convolutions are XLA's own, or (for gradients of single clients) products with patches.

    python -m benchmarks.peers.jax_networks
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from benchmarks.peers import jax_parts as parts

SHAPES = {
    "cnn": [(3, 3, 1, 32), (32,), (3, 3, 32, 64), (64,), (1600, 10), (10,)],
    "mlp": [(5, 64), (64,), (64, 64), (64,), (64, 1), (1,)],
}
LAYOUT = ("NHWC", "HWIO", "NHWC")


def initial(network, seed=0):
    """He-normal weights and zero biases."""
    draw = np.random.default_rng(seed)
    return [
        jnp.asarray(draw.normal(size=shape) * math.sqrt(2 / math.prod(shape[:-1])), jnp.float32)
        if len(shape) > 1
        else jnp.zeros(shape)
        for shape in SHAPES[network]
    ]


def convolved(x, kernel):
    """XLA's convolution."""
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=LAYOUT)


def by_patches(x, kernel):
    """The same as one product of matrices."""
    patches = jax.lax.conv_general_dilated_patches(
        x, kernel.shape[:2], (1, 1), "VALID", dimension_numbers=LAYOUT
    )  # [N, H, W, inputs x 3 x 3]
    return patches @ kernel.transpose(2, 0, 1, 3).reshape(-1, kernel.shape[-1])


def pooled(x):
    """The 2 x 2 maximum; an odd last row or column is left out."""
    n, height, width, channels = x.shape
    x = x[:, : height // 2 * 2, : width // 2 * 2]
    return x.reshape(n, height // 2, 2, width // 2, 2, channels).max((2, 4))


def cnn(params, images, convolve=convolved):
    """Scores [N, 10] of images [N, 28, 28]."""
    w1, b1, w2, b2, w3, b3 = params
    x = jax.nn.relu(pooled(convolve(images[..., None], w1)) + b1)
    x = jax.nn.relu(pooled(convolve(x, w2)) + b2)
    return x.reshape(len(x), -1) @ w3 + b3


def mlp(params, features):
    """Predictions [N] of features [N, 5]."""
    w1, b1, w2, b2, w3, b3 = params
    x = jax.nn.relu(features @ w1 + b1)
    return (jax.nn.relu(x @ w2 + b2) @ w3 + b3)[:, 0]


def losses(network, convolve, params, x, y):
    """(the loss of each sample, what the paper's metric is computed from)."""
    if network == "mlp":
        error = (mlp(params, x) - y) ** 2
        return error, error
    scores = cnn(params, x, convolve)
    paid = jax.nn.logsumexp(scores, axis=1) - jnp.take_along_axis(scores, y[:, None], 1)[:, 0]
    return paid, (scores.argmax(1) == y).astype(jnp.float32)


def fedogd(network, x, y, indices, step):
    """Losses and metrics [steps]."""
    return jax.device_get(
        _fedogd(network, jnp.asarray(x), jnp.asarray(y), jnp.asarray(indices), step)
    )


@functools.partial(jax.jit, static_argnums=0)
def _fedogd(network, x, y, indices, step):
    def mean(params, rows):
        paid, metric = losses(network, convolved, params, x[rows], y[rows])
        return paid.mean(), metric.mean()

    def one(params, rows):
        (loss, metric), gradient = jax.value_and_grad(mean, has_aux=True)(params, rows)
        return jax.tree.map(lambda w, g: w - step * g, params, gradient), (loss, metric)

    return jax.lax.scan(one, initial(network), indices)[1]


def ofediq(network, x, y, indices, step, rate, levels, blocks, seed, patches=False):
    """Losses and metrics [steps]; `patches`: gradients of single clients by products with patches."""
    heard, weights = parts.cohorts(np.asarray(indices), rate, seed)
    arrays = map(jnp.asarray, (x, y, indices, heard, weights))
    return jax.device_get(_ofediq(network, patches, blocks, *arrays, step, rate, levels))


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _ofediq(network, patches, blocks, x, y, indices, heard, weights, step, rate, levels):
    clients = indices.shape[1]
    flat, unravel = ravel_pytree(initial(network))
    convolve = by_patches if patches else convolved

    def own(flat, x, y):
        return losses(network, convolve, unravel(flat), x[None], y[None])[0][0]

    def one(flat, now):
        t, rows, cohort, weight = now
        paid, metric = losses(network, convolved, unravel(flat), x[rows], y[rows])
        gradients = jax.vmap(jax.grad(own), (None, 0, 0))(flat, x[cohort], y[cohort])
        width = blocks * -(-flat.size // blocks)
        draws = parts.uniform(t, jnp.arange(len(cohort))[:, None], jnp.arange(width))
        total = weight @ parts.quantised(gradients, levels, blocks, draws)
        return flat - step / (clients * rate) * total, (paid.mean(), metric.mean())

    times = jnp.arange(len(indices))
    return jax.lax.scan(one, flat, (times, indices, heard, weights))[1]


def check():
    """Checks equal convolutions, and that everybody taking part with fine levels is FedOGD."""
    draw = np.random.default_rng(0)
    images, labels = draw.uniform(size=(60, 28, 28)).astype(np.float32), draw.integers(0, 10, 60)
    params = initial("cnn")
    np.testing.assert_allclose(
        cnn(params, images), cnn(params, images, by_patches), rtol=1e-3, atol=1e-4
    )
    features, target = draw.uniform(size=(60, 5)).astype(np.float32), draw.uniform(size=60)
    data = {"cnn": (images, labels.astype(np.int32)), "mlp": (features, target.astype(np.float32))}
    for network, (x, y) in data.items():
        indices = draw.integers(0, 60, (10, 20))
        loss, _ = fedogd(network, x, y, indices, 0.01)
        for patches in (False, True):
            fine, _ = ofediq(network, x, y, indices, 0.01, 1.0, 2.0**20, 50, 0, patches)
            assert abs(fine - loss).max() < 1e-3, (network, patches)
    print("ok: convolutions agree, and OFedIQ with fine levels is FedOGD")


if __name__ == "__main__":
    check()
