"""FedSEA equals a loop written from Sahu et al. 2026, with the proof's sync times and the printed ones."""

import numpy as np
import pytest

import mainstem as ms
from mainstem import parts
from tests.algorithms.table import agrees, mean_losses, regression
from tests.reference.fedsea import fedsea as loop

T, K, D = 33, 4, 3


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("radius", [None, 0.3])
def test_fedsea_equals_the_papers_loop(offset, radius):
    world = regression(T, K, D)
    domain = parts.everything() if radius is None else parts.l2_ball(radius)
    algorithm = ms.fedsea(
        parts.inverse_time(sigma=0.5, shift=20), period=4, offset=offset, domain=domain
    )
    run = ms.simulate(algorithm, world.problem, world.stream, steps=T, dtype="float64")

    def project(x):
        return x if radius is None else x * min(1, radius / max(np.linalg.norm(x), 1e-300))

    expected = loop(
        world.gradient, np.zeros(D), T, K, project, lambda t: 2 / (0.5 * (t + 20)), 4, offset
    )
    agrees(run, expected, world.loss)
    assert np.allclose(run.loss, mean_losses(expected["models"], world.loss), rtol=0, atol=1e-10)
