"""What is computed in another form on an accelerator gives the numbers of the CPU's form.

The forms are chosen by JAX's default backend; here both run on the CPU.
"""

import jax
import numpy as np
import pytest

import mainstem as ms
from mainstem import parts

IMAGES = np.random.default_rng(0).uniform(size=(60, 12, 12))
ROWS, LABELS = IMAGES.reshape(60, -1)[:, :5], np.arange(60) % 2

BOX = parts.euclidean(parts.box(-3, 3))
CASES = {
    "a sum of gradients": (
        ms.fedogd(0.1),
        ms.problems.mlp(5, classes=2, hidden=(4, 3)),
        ms.streams.arrays(ROWS, LABELS, clients=6),
    ),
    "messages of a cohort": (
        ms.ofediq(0.1, rate=0.4, levels=4, blocks=2, period=2),
        ms.problems.cnn(side=12, classes=2),
        ms.streams.arrays(IMAGES, LABELS, clients=6),
    ),
    "models in sequence, rows at once": (
        ms.fedogd(0.1, sync=parts.every(3), participation=parts.exactly(4)),
        ms.problems.mlp(5, classes=2, hidden=(4, 3)),
        ms.streams.arrays(ROWS, LABELS, clients=6),
    ),
    "rounds without a loop": (
        ms.fedomd(0.1, mirror=BOX, sync=parts.every(2)),
        ms.problems.quadratic(low=-3, high=3),
        ms.streams.alternating(6),
    ),
}


def numbers(case):
    run = ms.simulate(*case, steps=16, seed=1, dtype="float64")
    return run.loss, run.models["server"], run.uplink_bits, run.downlink_bits


@pytest.mark.parametrize("name", CASES)
def test_the_forms_agree(name, monkeypatch):
    expected = numbers(CASES[name])
    jax.clear_caches()
    with monkeypatch.context() as changed:
        changed.setattr(jax, "default_backend", lambda: "gpu")
        found = numbers(CASES[name])
    jax.clear_caches()
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
