r"""Solver for quadratic functions: closed forms where they exist, each result with a certificate."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mainstem import check
from mainstem.base import Domain
from mainstem.measure.certificate import (
    EPS,
    Array,
    Region,
    Solution,
    norm,
)
from mainstem.measure.newton import secular
from mainstem.measure.quadratic_sums import Doubt, QuadraticSum
from mainstem.measure.solver import minimise, settle


class Quadratic(NamedTuple):
    """A sum of quadratic losses with the spectrum of A; of a diagonal A only the eigenvalues are stored."""

    sum: QuadraticSum
    matrix: Array | None
    eigenvalues: Array
    basis: Array | None

    def times(self, vector: Array) -> Array:
        """A times a vector."""
        return self.eigenvalues * vector if self.matrix is None else self.matrix @ vector

    def at(self, params: Array) -> tuple[float, Array]:
        """Value and gradient."""
        moved = params - self.sum.centre
        product = self.times(moved)
        value = float(moved @ (product / 2 + self.sum.gradient)) + self.sum.value
        return value, product + self.sum.gradient

    def hessian(self, _: Array) -> Array:
        """A as a full matrix."""
        return np.diag(self.eigenvalues) if self.matrix is None else self.matrix

    def rotate(self, vector: Array) -> Array:
        """The coordinates of `vector` along the eigenvectors."""
        return vector if self.basis is None else self.basis.T @ vector

    def back(self, vector: Array) -> Array:
        """The vector with these coordinates along the eigenvectors."""
        return vector if self.basis is None else self.basis @ vector

    @property
    def noise(self) -> float:
        """The size below which an eigenvalue counts as zero: the level of rounding."""
        size = self.eigenvalues.size
        return (4 * EPS + self.sum.doubt.matrix) * size * float(abs(self.eigenvalues).max())

    def errors(self, params: Array, _: float) -> tuple[float, Array]:
        """Bounds on the errors of the value and of each gradient entry: of the sum, and of evaluating it."""
        given, doubt = self.sum, self.sum.doubt
        moved, steep = abs(params - given.centre), np.sqrt(np.maximum(given.diagonal, 0))
        ulps = (8 + params.size) * EPS
        sizes = abs(self.eigenvalues) if self.matrix is None else abs(self.matrix)
        lost = EPS * (abs(params) + abs(given.centre))  # of `moved`

        def curved(vector: Array) -> Array:
            return sizes * vector if self.matrix is None else sizes @ vector

        slope = curved(moved) + abs(given.gradient)
        reach = float(steep @ moved)
        value = ulps * (float(moved @ slope) + abs(given.value)) + float(slope @ lost)
        value += doubt.value + float(moved @ doubt.gradient) + doubt.matrix * reach**2 / 2
        gradient = ulps * slope + curved(lost) + doubt.gradient + doubt.matrix * reach * steep
        return value, gradient


def minimise_quadratic(
    A: ArrayLike,
    b: ArrayLike,
    c: float,
    domain: Domain,
    *,
    tolerance: float = 1e-10,
    radius: float = 100.0,
) -> Solution:
    r"""The smallest value of $\frac12 w^\top A w - b^\top w + c$ over a domain, with a certificate.

    `A` is positive semidefinite: a matrix, the diagonal of one, or a number times the identity.
    Without a constraint the result is the minimiser of least norm. If $b$ is not in the range of $A$,
    the function has no minimum then, and the ball of `radius` is used instead. Eigenvalues at the
    level of rounding count as zero.

    >>> from mainstem.parts import everything
    >>> minimise_quadratic([[2.0, 0.0], [0.0, 0.0]], [2.0, 0.0], 1.0, everything())[:2]
    (array([1., 0.]), 0.0)
    """
    linear = np.asarray(b, np.float64)
    exact = Doubt(0.0, np.zeros_like(linear), 0.0)
    given = QuadraticSum(np.asarray(A, np.float64), -linear, float(c), np.zeros_like(linear), exact)
    return minimise_sum(given, domain, tolerance=tolerance, radius=radius)


def minimise_sum(
    given: QuadraticSum, domain: Domain, *, tolerance: float = 1e-10, radius: float = 100.0
) -> Solution:
    """The smallest value of a sum of quadratic losses over a domain; see `minimise_quadratic`."""
    quadratic = decompose(given)
    if domain.reach == math.inf:
        # In units in which the diagonal of A is 1: then an eigenvalue at the level of rounding means that
        # directions cannot be separated, not that one of them has small numbers.
        unit = np.sqrt(np.where(given.diagonal > 0, given.diagonal, 1.0))
        found = anywhere(decompose(given.scaled(unit)), domain, tolerance, unit)
        if found is not None:
            return found
    curvature = max(float(quadratic.eigenvalues.min()) - quadratic.noise, 0.0)
    region = settle(domain, curvature, radius)
    return minimise(
        quadratic.at,
        closed_form(quadratic, region),
        region,
        curvature=curvature,
        hessian=quadratic.hessian,
        tolerance=tolerance,
        rounding=quadratic.errors,
    )


def decompose(given: QuadraticSum) -> Quadratic:
    """The quadratic with the spectrum of A; an error unless A is symmetric and positive semidefinite."""
    matrix, size = np.asarray(given.matrix, np.float64), given.gradient.shape
    if len(size) != 1 or matrix.shape not in ((), size, size * 2):
        raise check.refuse(
            "minimise_quadratic", "A", "be a number, (D,) or (D, D) for b of (D,)", matrix.shape
        )
    if matrix.ndim < 2:
        quadratic = Quadratic(given, None, matrix + np.zeros(size), None)
    else:
        if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-8 * float(abs(matrix).max())):
            raise check.refuse("minimise_quadratic", "A", "be symmetric", given.matrix)
        matrix = (matrix + matrix.T) / 2
        quadratic = Quadratic(given, matrix, *np.linalg.eigh(matrix))
    lowest = float(quadratic.eigenvalues.min())
    if not lowest >= -16 * quadratic.noise:
        raise check.refuse("minimise_quadratic", "A's lowest eigenvalue", "be at least 0", lowest)
    return quadratic


def anywhere(
    quadratic: Quadratic, domain: Domain, tolerance: float, unit: Array
) -> Solution | None:
    """The least-norm minimiser without a constraint, or None if b is not in the range of A.

    `quadratic` is a function of unit * w.
    """
    steep = quadratic.eigenvalues > 2 * quadratic.noise
    linear = quadratic.rotate(quadratic.sum.linear)
    noise = 64 * linear.size * EPS * norm(linear) + norm(
        quadratic.errors(quadratic.sum.centre, 0)[1]
    )
    if norm(linear[~steep]) > noise:
        return None

    def in_range(vector: Array) -> Array:
        return vector if steep.all() else quadratic.back(steep * quadratic.rotate(vector))

    def at(params: Array) -> tuple[float, Array]:
        value, gradient = quadratic.at(params)
        return value, in_range(gradient)

    inverse = np.divide(1.0, quadratic.eigenvalues, out=np.zeros_like(linear), where=steep)
    params = quadratic.sum.centre
    for _ in range(3):  # the first iteration solves, the others refine
        params = params - quadratic.back(inverse * quadratic.rotate(quadratic.at(params)[1]))
    curvature = 1.0  # irrelevant if A and b are zero
    if steep.any():
        curvature = float(quadratic.eigenvalues[steep].min()) - quadratic.noise
    found = minimise(
        at, params, domain, curvature=curvature, tolerance=tolerance, rounding=quadratic.errors
    )
    found = found._replace(params=found.params / unit)
    if steep.all():
        return found
    flat = np.eye(linear.size)[:, ~steep] if quadratic.basis is None else quadratic.basis[:, ~steep]
    flat = flat / unit[:, None]  # the directions in which nothing changes, as those of w
    least = found.params - flat @ np.linalg.lstsq(flat, found.params)[0]
    note = f", eigenvalues below {2 * quadratic.noise:.0e} read as 0" if steep.any() else ""
    return found._replace(params=least, note=note)


def closed_form(quadratic: Quadratic, region: Region) -> Array:
    """The minimiser where a formula exists, otherwise the point of the region nearest to 0."""
    linear = quadratic.sum.linear
    size = linear.size
    reach = region.reach
    if reach is not None:
        turned = secular(quadratic.eigenvalues, quadratic.rotate(linear), reach)
        return region.project(quadratic.back(turned))
    if region.bounds is not None and quadratic.matrix is None:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            free = np.where(linear == 0, 0.0, linear / quadratic.eigenvalues)
        return region.project(free)
    if region.domain.unit_sum and not quadratic.eigenvalues.any():
        vertex = np.zeros(size)
        vertex[np.argmax(linear)] = 1.0
        return vertex
    return region.project(np.zeros(size))
