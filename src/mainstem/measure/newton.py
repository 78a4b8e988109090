"""Newton's method over a ball, with second derivatives that are used again as long as they serve.

A matrix of second derivatives and its decomposition cost as much as dozens of gradients. A step with those of
an earlier point, or of a similar function, still reduces the gap by a factor: they are renewed once that
factor is poor.
"""

import functools
import math
from collections.abc import Callable

import numpy as np
import scipy.linalg

from mainstem.measure.certificate import EPS, Array, Search, norm
from mainstem.parts.ball import on_edge

Hessian = Callable[[Array], Array]

SERVES = 0.3  # the part of a gap that a step may leave before the second derivatives are renewed


class Model:
    """A quadratic model of a convex function: its second derivatives, with their decompositions."""

    def __init__(self, curve: Array) -> None:
        self.curve = curve

    @functools.cached_property
    def _factor(self) -> tuple[Array, bool] | None:
        """The Cholesky factor, if there is one."""
        try:
            return scipy.linalg.cho_factor(self.curve)
        except scipy.linalg.LinAlgError:
            return None

    @functools.cached_property
    def _eigen(self) -> tuple[Array, Array]:
        values, basis = np.linalg.eigh(self.curve)
        return values, basis

    def minimiser(self, params: Array, gradient: Array, radius: float) -> Array:
        """The minimiser over the l2 ball, given the gradient at `params`."""
        linear = self.curve @ params - gradient
        if self._factor is not None:
            free: Array = scipy.linalg.cho_solve(self._factor, linear)
            if norm(free) <= radius:
                return free
        eigenvalues, basis = self._eigen
        return np.asarray(basis @ secular(eigenvalues, basis.T @ linear, radius))


def newton(
    search: Search, hessian: Hessian, radius: float, model: Model | None = None
) -> Model | None:
    """Newton's method with line search; each quadratic model is minimised exactly over the ball of `radius`.

    Begins with `model`, if there is one, and returns the last.
    """
    params, value, gradient, spent = search.params, search.value, search.gradient, False
    while not search.done:
        fresh = model is None or spent
        model = Model(hessian(params)) if model is None or spent else model
        move = model.minimiser(params, gradient, radius) - params
        slope, before = float(gradient @ move), search.gap
        found = _along(search, params, value, move, slope) if slope < 0 else None
        if found is not None:
            params, value, gradient = found
        idle = found is None or (slope > -1e-14 * abs(value) and search.gap >= before)
        if fresh and idle:
            break
        spent = idle or search.gap > SERVES * before
    return model


def _along(
    search: Search, params: Array, value: float, move: Array, slope: float
) -> tuple[Array, float, Array] | None:
    """The point that a line search reaches, with its value and gradient; None if there is no lower one."""
    step = 1.0
    while step >= 1e-9:
        ahead = search.region.project(params + step * move)
        new, gradient = search.at(ahead)
        if new <= value + 1e-4 * step * slope or search.done:
            return ahead, new, gradient
        step /= 2
    return None


def secular(eigenvalues: Array, linear: Array, radius: float) -> Array:
    """The minimiser of sum a_i w_i^2 / 2 - b_i w_i with |w| <= radius, for a_i >= 0.

    Eigenvalues and entries at the level of rounding count as zero. A linear term along a flat direction has
    no minimum without the constraint: the multiplier is then at least |b_flat| / radius, which makes every
    direction curved.
    """
    noise = EPS * linear.size
    curve = np.where(eigenvalues > noise * max(eigenvalues.max(), 0.0), eigenvalues, 0.0)
    free = np.divide(linear, curve, out=np.zeros_like(linear), where=curve > 0)
    flat = norm(linear[curve == 0])
    if radius == math.inf or (flat <= noise * norm(linear) and norm(free) <= radius):
        return free
    least = max(flat / radius, 1e-300)
    inside = np.asarray(on_edge(curve + least, linear, radius))
    return inside * min(1.0, radius / norm(inside))
