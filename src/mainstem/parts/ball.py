"""Minimisation over a Euclidean ball."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.base import Params

NEWTON = 40  # steps of Newton's method on a scalar: more than enough for full precision
MOST = 60  # the most steps of `minimise`


def quadratic(matrix: Any, vector: Any, current: Params, radius: float | None) -> Params:
    r"""The minimiser of w'Aw/2 - b'w over |w| <= radius (None: everywhere), A semidefinite, b in its range.

    If it is not unique, the one nearest to `current`. An eigenvalue within rounding error of zero
    counts as zero.
    """
    eigenvalues, basis = jnp.linalg.eigh(matrix)
    noise = jnp.finfo(eigenvalues.dtype).eps ** 0.75 * jnp.max(jnp.abs(eigenvalues))
    curve = jnp.where(eigenvalues > noise, eigenvalues, 0)
    return _of_eigenvalues(curve, basis, basis.T @ vector, current, radius)


def least_squares(rows: Any, targets: Any, current: Params, radius: float | None) -> Params:
    """The minimiser of |rows w - targets| over |w| <= radius (None: everywhere); rows is square.

    If it is not unique, the one nearest to `current`. A singular value within rounding error of zero
    counts as zero. The rows themselves give twice the digits of rows' rows, whose condition is the square.
    """
    left, singular, basis = jnp.linalg.svd(rows)
    noise = jnp.finfo(singular.dtype).eps ** (2 / 3) * jnp.max(singular)
    kept = jnp.where(singular > noise, singular, 0)
    return _of_eigenvalues(kept**2, basis.T, kept * (left.T @ targets), current, radius)


def _of_eigenvalues(
    curve: Any, basis: Any, linear: Any, current: Params, radius: float | None
) -> Params:
    """The minimiser of `quadratic`, in the basis of the eigenvectors; flat directions have the eigenvalue 0."""
    curved, here = curve > 0, basis.T @ current
    least = jnp.where(curved, linear / jnp.where(curved, curve, 1), 0)
    level = jnp.where(curved, 0, here)  # in flat directions, stay at `current`
    if radius is None:
        return basis @ (least + level)
    room = jnp.maximum(radius**2 - jnp.sum(least**2), 0)
    length = jnp.sqrt(jnp.sum(level**2))
    flat = level * jnp.minimum(1, jnp.sqrt(room) / jnp.where(length > 0, length, 1))
    slack = jnp.sum(least**2) <= radius**2
    edge = on_edge(jnp.where(curved, curve, 1), jnp.where(curved, linear, 0), radius)
    return basis @ jnp.where(slack, least + flat, edge)


def on_edge(curve: Any, linear: Any, radius: float) -> Any:
    """b / (a + m) with m >= 0 such that its length is the radius; all a > 0. Compiled if b is a JAX array.

    1 / length is concave and increasing in m, so that Newton's method approaches m from below and
    never overshoots (More and Sorensen 1983).
    """
    compiled = isinstance(linear, jax.Array)
    xp, repeated = (jnp, jax.lax.fori_loop) if compiled else (np, _repeated)

    def better(_: int, m: Any) -> Any:
        point = linear / (curve + m)
        length = xp.sqrt(xp.sum(point**2))
        slope = xp.sum(point**2 / (curve + m)) / xp.where(length > 0, length, 1) ** 3
        move = (1 / radius - 1 / xp.where(length > 0, length, radius)) / xp.where(
            slope > 0, slope, 1
        )
        return xp.where(slope > 0, xp.maximum(m + move, 0), m)

    return linear / (curve + repeated(0, NEWTON, better, xp.zeros_like(linear[0])))


def _repeated(first: int, last: int, function: Callable[[int, Any], Any], state: Any) -> Any:
    """JAX's `fori_loop`, uncompiled."""
    for n in range(first, last):
        state = function(n, state)
    return state


class Found(NamedTuple):
    """A point in the ball, with a certificate: the value there is at most `gap` above the minimum."""

    params: Params
    gap: Any


def minimise(function: Callable[[Params], Any], start: Params, radius: float) -> Found:
    """Minimises a smooth convex function over |w| <= radius, with a certificate.

    Newton's method with a line search; each quadratic model is minimised exactly over the ball. If a
    Frank-Wolfe step gives a lower value (a saturated loss has a slope but no curvature), it is taken
    instead. Stops when the Frank-Wolfe gap <g, w> + radius |g| is at the level of rounding error.
    """
    tolerance = 32 * jnp.finfo(start.dtype).eps
    slope_of, curve_of = jax.grad(function), jax.hessian(function)

    def gap(params: Params) -> Any:
        slope = slope_of(params)
        return slope @ params + radius * jnp.sqrt(jnp.sum(slope**2))

    def unfinished(state: Any) -> Any:
        params, gap, tries = state
        return (gap > tolerance * jnp.maximum(1, jnp.abs(function(params)))) & (tries < MOST)

    def nearer(state: Any) -> Any:
        params, before, tries = state
        value, slope, curve = function(params), slope_of(params), curve_of(params)
        noise = tolerance * jnp.maximum(1, jnp.abs(value))
        newton = quadratic(curve, curve @ params - slope, params, radius) - params
        steepness = jnp.sqrt(jnp.sum(slope**2))
        across = -radius / jnp.where(steepness > 0, steepness, 1) * slope - params
        steps = 0.5 ** jnp.arange(12, dtype=params.dtype)
        ahead = params + steps[None, :, None] * jnp.stack([newton, across])[:, None]
        values = jax.vmap(jax.vmap(function))(ahead)
        fits = values[0] <= value + 1e-4 * steps * (slope @ newton)
        near, far = jnp.argmax(fits), jnp.argmin(values[1])  # the full step if none fits
        lower = values[1, far] < values[0, near] - noise
        moved = jnp.where(lower, ahead[1, far], ahead[0, near])
        after = gap(moved)
        better = (after < before) | (jnp.minimum(values[0, near], values[1, far]) < value - noise)
        return (
            jnp.where(better, moved, params),
            jnp.where(better, after, before),
            jnp.where(better, tries + 1, MOST),
        )

    length = jnp.sqrt(jnp.sum(start**2))
    first = start * jnp.minimum(1, radius / jnp.where(length > 0, length, 1))
    state = first, gap(first), jnp.int32(0)
    params, proven, _ = jax.lax.while_loop(unfinished, nearer, state)
    return Found(params, proven)
