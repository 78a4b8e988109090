"""`python -m tests.streams.on_a_gpu`: whether a GPU deals and draws the same samples as a CPU, beside it."""

import jax
import numpy as np

import mainstem as ms
from mainstem import random
from tests.streams.replayed import replayed

STEPS = 300
ROWS = [17, 40, 1_797, 100_003]  # with a place of their own in the grid, and without


def table(rows, clients, **named):
    """Each row's feature and label is its number."""
    number = np.arange(rows)
    return ms.streams.arrays(number[:, None], number % 7, clients, **named)


def streams():
    for rows in ROWS:
        for deal in (ms.streams.evenly(), ms.streams.in_time(), ms.streams.by_label(alpha=1.0)):
            yield f"{rows:,} rows, {deal}", table(rows, 5, deal=deal)
    keys = [str(n % 3) for n in range(ROWS[2])]
    yield "by key", table(ROWS[2], 3, deal=ms.streams.by_key(), keys=keys)
    for made in (
        ms.streams.alternating(5),
        ms.streams.sea_quadratic(5),
        ms.streams.sea_ridge(5),
        ms.streams.linear_bandit(5, actions=2, shared=2, own=1),
        ms.streams.residuals(5, shared=2, own=1, noise=0.1),
        ms.streams.walking(5),
        ms.streams.in_batches(table(ROWS[1], 5), size=3),
        ms.streams.sometimes(table(ROWS[1], 5), rate=0.5),
    ):
        yield str(made)[:60], made


def difference(stream):
    """The largest difference of a number between the samples of a GPU and of a CPU."""

    def samples(platform):
        with jax.default_device(jax.devices(platform)[0]):
            return jax.tree.leaves(replayed(stream, STEPS, seed=3))

    pairs = zip(samples("cpu"), samples("gpu"), strict=True)
    return max(np.abs(np.asarray(a, float) - np.asarray(b, float)).max() for a, b in pairs)


def bits(platform):
    """Random bits for some keys, which every draw is made from."""
    with jax.default_device(jax.devices(platform)[0]):
        return np.asarray(random.mix(np.arange(100_000, dtype=np.uint32), np.uint32(12345)))


if __name__ == "__main__":
    assert (bits("cpu") == bits("gpu")).all()
    for name, stream in streams():
        found = difference(stream)
        print(f"{found:8.1e}  {name}", flush=True)
        exact = "rows" in name or name == "by key"
        assert found == 0 if exact else found < 1e-5, name
    print("the same samples")
