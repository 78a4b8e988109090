"""FedOMD's experiment in bare JAX, many seeds at once, with draws by a hash of counters.

The same as `numpy_fedomd`, in three forms: a scan over the steps, the same scan unrolled, and a scan over rounds
whose draws and losses are computed for the whole round at once.

    python -m benchmarks.peers.jax_fedomd
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.peers.jax_parts import normal

RADIUS, MEAN, VARIANCE = 3.0, 2.0, 5.0


def run(seeds, steps, clients=20, period=20, rounds=False, unroll=1):
    """(local, collective losses [steps, seeds], models [seeds, clients]), computed, and on the device."""
    return jax.block_until_ready(_run(seeds, steps, clients, period, rounds, unroll))


@functools.partial(jax.jit, static_argnums=range(6))
def _run(seeds, steps, clients, period, rounds, unroll):
    seed, client = jnp.arange(seeds)[:, None], jnp.arange(clients)
    first = jnp.zeros((seeds, clients))

    def one(x, t):
        c = targets(t, seed, client)
        return moved(x, c, t, period), losses(x, c)

    def whole(x, n):
        times = n * period + 1 + jnp.arange(period)
        c = targets(times[:, None, None], seed, client)
        rows = []
        for j in range(period):
            rows.append(x)
            x = stepped(x, c[j], times[j])
        x = jnp.broadcast_to(x.mean(axis=-1, keepdims=True), x.shape)
        return x, losses(jnp.stack(rows), c)

    if rounds:
        last, found = jax.lax.scan(whole, first, jnp.arange(steps // period))
        found = jax.tree.map(lambda x: x.reshape(steps, seeds), found)
    else:
        last, found = jax.lax.scan(one, first, jnp.arange(1, steps + 1), unroll=unroll)
    return *found, last


def targets(t, seed, client):
    """The points c of the clients."""
    a = MEAN + VARIANCE**0.5 * normal(seed, t, client)
    return jnp.where(t % 2 == 0, a, -a)


def stepped(x, c, t):
    """The projected gradient step with the step size 1 / t."""
    return jnp.clip(x - (x - c) / t, -RADIUS, RADIUS)


def moved(x, c, t, period):
    """The step, and after a round the mean."""
    x = stepped(x, c, t)
    return jnp.where(t % period == 0, x.mean(axis=-1, keepdims=True), x)


def losses(x, c):
    """The mean over clients of the own loss, and of the collective one, from moments."""
    local = 0.5 * jnp.mean((x - c) ** 2, axis=-1)
    second = jnp.mean(x**2, axis=-1) + jnp.mean(c**2, axis=-1)
    return local, 0.5 * second - x.mean(axis=-1) * c.mean(axis=-1)


def check():
    """Checks that the three forms agree, and the level of the losses."""
    expected = run(3, 200)
    for form in ({"unroll": 2}, {"rounds": True}):
        for x, y in zip(expected, run(3, 200, **form), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)
    mean = expected[0][100:].mean()  # (Var a + E a^2 + E x^2) / 2 with E x^2 below RADIUS^2
    assert 4 < mean < 10, mean
    print("ok: three forms agree")


if __name__ == "__main__":
    check()
