"""Domains: the closed convex sets in which models live. Euclidean projections are optax's."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from optax import projections

from mainstem import check
from mainstem.base import Domain
from mainstem.spec import recorded


@recorded
def everything() -> Domain:
    """The whole space."""
    return Domain("everything", project=lambda x: x, support=None)


@recorded
def box(low: float, high: float) -> Domain:
    """Every coordinate in [low, high]."""
    low, high = check.number("box", "low", low), check.number("box", "high", high)
    if low >= high:
        raise check.refuse("box", "high", f"be above low = {low}", high)
    return Domain(
        f"box [{low:g}, {high:g}]",
        project=lambda x: projections.projection_box(x, low, high),
        support=lambda g: np.sum(np.maximum(np.asarray(g) * low, np.asarray(g) * high)),
        bounds=(low, high),
    )


@recorded
def l2_ball(radius: float) -> Domain:
    """Euclidean norm at most `radius`."""
    radius = check.positive("l2_ball", "radius", radius)
    return Domain(
        f"l2 ball of radius {radius:g}",
        project=lambda x: projections.projection_l2_ball(x, radius),
        support=lambda g: radius * np.linalg.norm(g),
    )


@recorded
def simplex() -> Domain:
    """Non-negative coordinates that sum to one."""
    return Domain(
        "simplex",
        project=lambda x: projections.projection_simplex(x, 1.0),
        support=lambda g: np.max(g),
    )


@recorded
def l1_ball(radius: float) -> Domain:
    """Absolute values that sum to at most `radius`."""
    radius = check.positive("l1_ball", "radius", radius)
    return Domain(
        f"l1 ball of radius {radius:g}",
        project=lambda x: projections.projection_l1_ball(x, radius),
        support=lambda g: radius * np.max(np.abs(g)),
    )


@recorded
def p_ball(p: float, radius: float) -> Domain:
    """p-norm at most `radius`: the domain of the p-norm map, which has no euclidean projection here."""
    p, radius = power("p_ball", p), check.positive("p_ball", "radius", radius)
    dual = p / (p - 1)

    def scaled(x: Any) -> Any:
        norm = jnp.sum(jnp.abs(x) ** p) ** (1 / p)
        return x * jnp.minimum(1.0, radius / jnp.where(norm > 0, norm, 1.0))

    return Domain(
        f"{p:g}-norm ball of radius {radius:g}",
        project=scaled,  # nearest in the map's own divergence, not in euclidean distance
        support=lambda g: radius * _norm(np.asarray(g), dual),
    )


def _norm(g: np.ndarray, p: float) -> Any:
    """The p-norm; scaled, since a large p over- and underflows."""
    largest = np.max(np.abs(g))
    return largest * np.sum(np.abs(g / (largest or 1)) ** p) ** (1 / p)


def power(owner: str, p: float) -> float:
    """A norm's exponent, in (1, 2], where |x|_p^2 / 2 is strongly convex."""
    p = check.number(owner, "p", p)
    if not 1 < p <= 2 or math.isclose(p, 1):
        raise check.refuse(owner, "p", "lie in (1, 2]", p)
    return p
