"""FedAvg on images in bare JAX: every user learns its images once in batches, and the models are averaged.

The network of pfl-research's CIFAR10 benchmark without dropout: 3x3x32, relu, 3x3x64, relu, pool 2, dense 128,
relu, dense 10. Users are trained in turn, or all at once (`vmap`).

    python -m benchmarks.peers.jax_fedavg
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.peers.jax_networks import convolved, pooled

SHAPES = [(3, 3, 3, 32), (32,), (3, 3, 32, 64), (64,), (12544, 128), (128,), (128, 10), (10,)]


def initial(seed=0):
    """He-normal weights and zero biases."""
    draw = np.random.default_rng(seed)
    return [
        jnp.asarray(draw.normal(size=shape) * math.sqrt(2 / math.prod(shape[:-1])), jnp.float32)
        if len(shape) > 1
        else jnp.zeros(shape)
        for shape in SHAPES
    ]


def scores(params, images, convolve=convolved):
    """[N, 10] from images [N, 32, 32, 3]."""
    w1, b1, w2, b2, w3, b3, w4, b4 = params
    x = jax.nn.relu(convolve(images, w1) + b1)
    x = pooled(jax.nn.relu(convolve(x, w2) + b2))
    return jax.nn.relu(x.reshape(len(x), -1) @ w3 + b3) @ w4 + b4


def loss(params, images, labels):
    """(the mean cross-entropy, the accuracy)."""
    found = scores(params, images)
    paid = jax.nn.logsumexp(found, axis=1) - jnp.take_along_axis(found, labels[:, None], 1)[:, 0]
    return paid.mean(), jnp.mean(found.argmax(1) == labels)


def fedavg(images, labels, rounds, batch, step, vmapped):
    """Losses and accuracies [rounds] of the broadcast, on all images [users, n, 32, 32, 3]."""
    arrays = jnp.asarray(images), jnp.asarray(labels)
    return jax.device_get(_fedavg(*arrays, rounds, batch, vmapped, step))


@functools.partial(jax.jit, static_argnums=(2, 3, 4))
def _fedavg(images, labels, rounds, batch, vmapped, step):
    users, count = labels.shape

    def user(params, mine):
        x, y = mine
        found = loss(params, x, y)

        def learnt(w, some):
            gradient, _ = jax.grad(loss, has_aux=True)(w, *some)
            return jax.tree.map(lambda p, g: p - step * g, w, gradient), None

        split = jax.tree.map(lambda a: a.reshape(count // batch, batch, *a.shape[1:]), (x, y))
        return jax.lax.scan(learnt, params, split)[0], found

    def at_once(params):
        models, found = jax.vmap(user, (None, 0))(params, (images, labels))
        return jax.tree.map(lambda w: w.mean(axis=0), models), found

    def in_turn(params):
        def add(total, mine):
            model, found = user(params, mine)
            return jax.tree.map(jnp.add, total, model), found

        zero = jax.tree.map(jnp.zeros_like, params)
        total, found = jax.lax.scan(add, zero, (images, labels))
        return jax.tree.map(lambda w: w / users, total), found

    def one(params, _):
        params, found = (at_once if vmapped else in_turn)(params)
        return params, jax.tree.map(jnp.mean, found)

    return jax.lax.scan(one, initial(), None, length=rounds)[1]


def check():
    """Checks the number of parameters, that both forms agree, and that the model learns."""
    assert sum(math.prod(shape) for shape in SHAPES) == 1_626_442
    draw = np.random.default_rng(0)
    images = draw.uniform(size=(2, 4, 32, 32, 3)).astype(np.float32)
    labels = draw.integers(0, 10, (2, 4)).astype(np.int32)
    turn, once = (fedavg(images, labels, 3, 2, 0.01, vmapped)[0] for vmapped in (False, True))
    np.testing.assert_allclose(turn, once, rtol=1e-3)
    assert turn[-1] < turn[0]
    print(f"ok: loss from {turn[0]:.3f} to {turn[-1]:.3f}")


if __name__ == "__main__":
    check()
