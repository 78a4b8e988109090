"""FedOGD with logistic regression on rows of a table in bare JAX: a new order of the rows in each pass.

python -m benchmarks.peers.jax_rows
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.peers.jax_parts import shuffled


def fedogd(features, target, clients, steps, step):
    """(losses [steps], accuracies [steps]): means over the clients of the model they predicted with."""
    table = jnp.asarray(features), jnp.asarray(target)
    return jax.device_get(_fedogd(*table, clients, steps, step))


@functools.partial(jax.jit, static_argnums=(2, 3))
def _fedogd(features, target, clients, steps, step):
    count, client = len(features), jnp.arange(clients)

    def one(w, t):
        offset = (t % max(1, count // clients)) * clients + client  # passes hold whole steps
        rows = shuffled(offset % count, count, t * clients // count)
        x, y = features[rows], target[rows]
        score = x @ w[:-1] + w[-1]
        loss = jnp.mean(jax.nn.softplus(jnp.where(y == 1, -score, score)))
        slope = (jax.nn.sigmoid(score) - y) / clients
        gradient = jnp.append(slope @ x, slope.sum())
        return w - step * gradient, (loss, jnp.mean((score > 0) == (y == 1)))

    first = jnp.zeros(features.shape[1] + 1)
    return jax.lax.scan(one, first, jnp.arange(steps))[1]


def check():
    """Checks that a pass contains each row once, and that the model learns."""
    for count in (100, 1000, 1 << 12):
        order = np.asarray(shuffled(jnp.arange(count), count, 7))
        assert sorted(order) == list(range(count)), count
        assert (order != np.asarray(shuffled(jnp.arange(count), count, 8))).mean() > 0.9
    draw = np.random.default_rng(0)
    x = draw.normal(size=(1000, 4)).astype(np.float32)
    loss, accuracy = fedogd(x, (x[:, 0] > 0).astype(np.int32), 100, 200, 0.5)
    assert accuracy[-20:].mean() > 0.9, accuracy
    print(f"ok: permutations; loss from {loss[0]:.3f} to {loss[-1]:.3f}")


if __name__ == "__main__":
    check()
