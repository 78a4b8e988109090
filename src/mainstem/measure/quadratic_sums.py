r"""Sums of quadratic losses about a point, with bounds on the rounding errors of the sums.

The sum of $\frac12 r_i^2$ over many residuals $r_i$ is a quadratic form. About 0 its constant is
$\frac12 \sum y_i^2$, and with large targets its minimum is what is left of a cancellation: at $10^8$ even float64
keeps no digit of it. About a point near the minimum nothing cancels, because each residual is computed first and
squared then. So a sum is formed about 0, minimised, formed again about the minimiser, and minimised again.
"""

import math
from typing import NamedTuple

import numpy as np

from mainstem.measure.certificate import EPS, Array

SPARE = 1000  # roundings of one loss apart from its sums: of its form, and of a batch


class Doubt(NamedTuple):
    """Bounds on the errors of a sum: of its value, of each entry of its gradient, and of its matrix."""

    value: float
    gradient: Array
    matrix: float  # the error of A_ij over sqrt(A_ii A_jj)


class QuadraticSum(NamedTuple):
    """f(w) = d'Ad / 2 + g'd + v with d = w - centre."""

    matrix: Array | float  # A, its diagonal, or a number times the identity
    gradient: Array  # g
    value: float  # v
    centre: Array
    doubt: Doubt

    @property
    def diagonal(self) -> Array:
        """The diagonal of A."""
        matrix = np.asarray(self.matrix, np.float64)
        return np.diag(matrix) if matrix.ndim == 2 else matrix + np.zeros_like(self.gradient)

    @property
    def linear(self) -> Array:
        """b of w'Aw / 2 - b'w + c."""
        matrix = np.asarray(self.matrix)
        moved = matrix @ self.centre if matrix.ndim == 2 else matrix * self.centre
        return moved - self.gradient

    def scaled(self, unit: Array) -> "QuadraticSum":
        """The same function of unit * w."""
        matrix = np.asarray(self.matrix, np.float64)
        divisor = np.outer(unit, unit) if matrix.ndim == 2 else unit**2
        doubt = self.doubt._replace(gradient=self.doubt.gradient / unit)
        return QuadraticSum(
            matrix / divisor, self.gradient / unit, self.value, self.centre * unit, doubt
        )

    def about(self, centre: Array, value: float, gradient: Array, terms: int) -> "QuadraticSum":
        """The same sum of `terms` terms about another point, where it has this value and gradient.

        This sum is about 0. The bounds hold for losses that are half squares of residuals (of a few, with their
        own ridge): the error of a residual is that of a dot product, so that the errors of all are at most
        `size`, the root of the sum of squares of what is added up in them.
        """
        steep, left = np.sqrt(np.maximum(self.diagonal, 0)), math.sqrt(max(2 * value, 0))
        size = math.sqrt(max(2 * self.value, 0)) + float(steep @ abs(centre))
        each, total = (8 + centre.size) * EPS, (SPARE + terms) * EPS
        doubt = Doubt(
            total * abs(value) + each * size * (left + each * size / 2),
            steep * (each * size + total * left),
            self.doubt.matrix,
        )
        return QuadraticSum(self.matrix, gradient, value, centre, doubt)


def about_zero(
    matrix: Array | float, vector: Array, constant: float, terms: int, sizes: Array | None = None
) -> QuadraticSum:
    """The sum of `terms` forms w'Aw / 2 - b'w + c.

    `sizes` is the sum of the |b|, entry by entry; for sums of squares it may be left out.
    """
    total = (SPARE + terms) * EPS
    doubt = Doubt(total * abs(constant), np.zeros_like(vector), total)
    found = QuadraticSum(matrix, -vector, constant, np.zeros_like(vector), doubt)
    if sizes is None:
        sizes = np.sqrt(np.maximum(2 * constant * found.diagonal, 0)) + abs(vector)
    return found._replace(doubt=doubt._replace(gradient=total * sizes))
