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
    Rounding,
    Solution,
    norm,
)
from mainstem.measure.solver import minimise, secular, settle


class Quadratic(NamedTuple):
    """w'Aw / 2 - b'w + c, with the spectrum of A; of a diagonal A only the eigenvalues are stored."""

    matrix: Array | None
    linear: Array
    constant: float
    eigenvalues: Array
    basis: Array | None

    def times(self, params: Array) -> Array:
        """A w."""
        return self.eigenvalues * params if self.matrix is None else self.matrix @ params

    def at(self, params: Array) -> tuple[float, Array]:
        """Value and gradient."""
        product = self.times(params)
        value = float(params @ (product / 2 - self.linear)) + self.constant
        return value, product - self.linear

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
        return 4 * self.linear.size * EPS * float(abs(self.eigenvalues).max())


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
    quadratic = decompose(A, b, c)
    if domain.reach == math.inf:
        found = anywhere(quadratic, domain, tolerance)
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
        rounding=rounding(quadratic),
    )


def decompose(A: ArrayLike, b: ArrayLike, c: float) -> Quadratic:
    """The quadratic with the spectrum of A; an error unless A is symmetric and positive semidefinite."""
    matrix, linear = np.asarray(A, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if linear.ndim != 1 or matrix.shape not in ((), linear.shape, linear.shape * 2):
        raise check.refuse(
            "minimise_quadratic", "A", "be a number, (D,) or (D, D) for b of (D,)", matrix.shape
        )
    if matrix.ndim < 2:
        quadratic = Quadratic(None, linear, float(c), matrix + np.zeros_like(linear), None)
    else:
        if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-8 * float(abs(matrix).max())):
            raise check.refuse("minimise_quadratic", "A", "be symmetric", A)
        matrix = (matrix + matrix.T) / 2
        quadratic = Quadratic(matrix, linear, float(c), *np.linalg.eigh(matrix))
    lowest = float(quadratic.eigenvalues.min())
    if not lowest >= -16 * quadratic.noise:
        raise check.refuse("minimise_quadratic", "A's lowest eigenvalue", "be at least 0", lowest)
    return quadratic


def rounding(quadratic: Quadratic) -> Rounding:
    """Bounds on the rounding errors of the value and of each gradient entry: dot products of length D."""
    ulps = (8 + quadratic.linear.size) * EPS
    sizes = quadratic._replace(
        matrix=None if quadratic.matrix is None else abs(quadratic.matrix),
        eigenvalues=abs(quadratic.eigenvalues),
    )

    def errors(params: Array, _: float) -> tuple[float, Array]:
        product, linear = sizes.times(abs(params)), abs(quadratic.linear)
        value = float(abs(params) @ (product / 2 + linear)) + abs(quadratic.constant)
        return ulps * value, ulps * (product + linear)

    return errors


def anywhere(quadratic: Quadratic, domain: Domain, tolerance: float) -> Solution | None:
    """The least-norm minimiser without a constraint, or None if b is not in the range of A."""
    steep = quadratic.eigenvalues > 2 * quadratic.noise
    linear = quadratic.rotate(quadratic.linear)
    if norm(linear[~steep]) > 64 * linear.size * EPS * norm(linear):
        return None

    def in_range(vector: Array) -> Array:
        return vector if steep.all() else quadratic.back(steep * quadratic.rotate(vector))

    def at(params: Array) -> tuple[float, Array]:
        value, gradient = quadratic.at(params)
        return value, in_range(gradient)

    inverse = np.divide(1.0, quadratic.eigenvalues, out=np.zeros_like(linear), where=steep)
    params = np.zeros_like(linear)
    for _ in range(3):  # the first iteration solves, the others refine
        params = params - quadratic.back(inverse * quadratic.rotate(quadratic.at(params)[1]))
    curvature = 1.0  # irrelevant if A and b are zero
    if steep.any():
        curvature = float(quadratic.eigenvalues[steep].min()) - quadratic.noise
    found = minimise(
        at, params, domain, curvature=curvature, tolerance=tolerance, rounding=rounding(quadratic)
    )
    if steep.all() or not steep.any():
        return found
    read = f"{found.statement}, eigenvalues of A below {2 * quadratic.noise:.0e} read as 0"
    return found._replace(statement=read)


def closed_form(quadratic: Quadratic, region: Region) -> Array:
    """The minimiser where a formula exists, otherwise the point of the region nearest to 0."""
    linear, size = quadratic.linear, quadratic.linear.size
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
