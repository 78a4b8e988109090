"""Gaussian-kernel regression with random Fourier features (Rahimi and Recht 2007)."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from mainstem import check
from mainstem.base import Form, Linear, Problem, Sample, constant
from mainstem.problems.supervised import supervised
from mainstem.spec import recorded


@recorded
def random_features(
    features: int, count: int = 100, bandwidth: float = 1.0, ridge: float = 0.0, seed: int = 0
) -> Problem:
    r"""A linear model on :math:`\sqrt{2/n} \cos(\Omega x + \beta)`: convex, and nearly as rich as a kernel.

    `seed` draws the n = `count` frequencies, from a normal distribution of scale 1 / `bandwidth`.

    >>> random_features(features=6, count=50).size
    50
    """
    features = check.integer("random_features", "features", features, least=1)
    count = check.integer("random_features", "count", count, least=1)
    bandwidth = check.positive("random_features", "bandwidth", bandwidth)
    ridge = check.at_least("random_features", "ridge", ridge, 0)
    draw = np.random.default_rng(check.integer("random_features", "seed", seed, least=0))
    frequencies = draw.normal(0, 1 / bandwidth, (features, count))
    phases = draw.uniform(0, 2 * math.pi, count)

    def lifted(x: Any) -> Any:
        return math.sqrt(2 / count) * jnp.cos(x @ constant(frequencies) + constant(phases))

    def form(seen: Sample) -> Form:
        z = lifted(seen.shown)
        matrix = jnp.outer(z, z) + ridge * jnp.eye(count)
        return Form(matrix, seen.hidden * z, 0.5 * seen.hidden**2)

    return supervised(
        "random_features",
        init=lambda key: jnp.zeros(count),
        apply=lambda params, x: lifted(x) @ params,
        penalty=lambda score, target: 0.5 * (score - target) ** 2,
        shape=(features,),
        classes=None,
        ridge=ridge,
        convex=True,
        curvature=ridge,
        form=form,
        linear=Linear(lambda seen: lifted(seen.shown), slope=None, bend=1.0),
    )
