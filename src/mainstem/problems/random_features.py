"""Random Fourier features: regression with an approximate Gaussian kernel (Rahimi and Recht 2007)."""

import functools
import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from mainstem.base import Params, constant
from mainstem.problems.supervised import LeastSquares, ridge_field
from mainstem.random import Key
from mainstem.value import integer, positive, value


@value
class random_features(LeastSquares):
    r"""Least squares on random cosines of the features: convex, and close to a Gaussian kernel.

    .. math:: \ell(w) = \frac{1}{2} (w \cdot z(x) - y)^2 + \frac{\rho}{2} |w|^2, \quad
              z(x) = \sqrt{2/n} \cos(\Omega x + \beta)

    with :math:`\rho` the `ridge`. `seed` draws the n = `count` frequencies :math:`\Omega`, from a normal
    distribution of scale 1 / `bandwidth`, and the phases :math:`\beta`, uniformly.

    >>> random_features(features=6, count=50).parameters
    50
    """

    features: int = integer(least=1)
    count: int = integer(default=100, least=1)
    bandwidth: float = positive(default=1.0)
    ridge: float | None = ridge_field()
    seed: int = integer(default=0, least=0)

    def init(self, key: Key) -> Params:
        return jnp.zeros(self.count)

    def row(self, x: Any) -> Any:
        normals, phases = _drawn(self.seed, self.features, self.count)
        frequencies = (1 / self.bandwidth) * constant(normals)
        return math.sqrt(2 / self.count) * jnp.cos(x @ frequencies + constant(phases))


@functools.cache
def _drawn(seed: int, features: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies of scale 1, and phases."""
    draw = np.random.default_rng(seed)
    return draw.normal(size=(features, count)), draw.uniform(0, 2 * math.pi, count)
