"""Certificates against 60 digits: the truth is inside the stated interval, every time."""

import re

import numpy as np
import pytest

import mainstem as ms
from mainstem.measure.certificate import certified
from tests.measure.certificates import drawn, refuted

BLOCK = 10  # instances of a test


@pytest.mark.parametrize(
    "first",
    [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(BLOCK, 500, BLOCK))],
)
def test_the_truth_is_inside_the_interval(first):
    found = {seed: refuted(drawn(seed)) for seed in range(first, first + BLOCK)}
    assert not {seed: how for seed, how in found.items() if how}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("centre", [0.0, 1e3, 1e6, 1e8])
def test_a_large_mean_of_the_targets_costs_no_digit_of_the_best(centre, dtype):
    """The best of a regression with an intercept is the same, wherever the targets lie."""
    draw = np.random.default_rng(1)
    x = draw.normal(size=(200, 3))
    y = x @ [1.0, -2.0, 0.5] + draw.normal(size=200)
    rows = np.c_[x, np.ones(200)]
    wanted = np.sum((y - rows @ np.linalg.lstsq(rows, y)[0]) ** 2) / 2 / 4  # a mean over 4 clients
    stream = ms.streams.arrays(x, y + centre, clients=4)
    run = ms.simulate(ms.fedogd(1e-3), ms.problems.linear(3), stream, steps=50, dtype=dtype)
    found = run.regret()
    spent = np.sum(run.loss, dtype=np.float64)
    assert found.gaps[-1] < 1e-3
    # What cannot be seen in a regret: the targets' rounding, and that of the losses spent.
    lost = 1e-8 * centre + 1e-15 * spent
    assert abs(spent - float(found) - wanted) <= found.gaps[-1] + lost + 1e-12


def test_a_certificate_is_rounded_up():
    for gap in np.random.default_rng(4).lognormal(-10, 5, size=500):
        shown = float(re.search(r"within ([^)]+)", certified("best", gap))[1])
        assert gap <= shown <= 1.11 * gap
