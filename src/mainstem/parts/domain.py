"""Domains: closed convex sets of models. Euclidean projections are optax's."""

import itertools
import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from optax import projections

from mainstem import check
from mainstem.base import Domain
from mainstem.value import leaf, positive, value

CORNERS = 12  # the corners of a box are listed up to this dimension


@value
class everything(Domain):
    """The entire space.

    >>> everything().bounded
    False
    """

    bounded = False
    whole = True

    @property
    def title(self) -> str:
        return "everything"

    @property
    def reach(self) -> Any:
        return math.inf

    def project(self, params: Any) -> Any:
        return params

    def ball_of(self, p: Any) -> bool:
        return True


def _ends(owner: str, name: str, given: Any) -> Any:
    """Checks a bound: a number, or one for each coordinate; it may be infinite."""
    try:
        ends = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise check.refuse(owner, name, "be a number", given) from None
    if isinstance(given, bool) or ends.ndim > 1 or ends.size == 0 or np.isnan(ends).any():
        raise check.refuse(owner, name, "be a number", given)
    return ends if ends.ndim else float(ends)


@value
class box(Domain):
    """Every coordinate in [low, high]. A bound is one number or one for each coordinate, and may be infinite.

    >>> box(-1, 1).project(np.array([3.0, 0.5])).tolist()
    [1.0, 0.5]
    """

    low: Any = leaf(checked=_ends)
    high: Any = leaf(checked=_ends)

    def admit(self) -> None:
        if np.any(np.asarray(self.low) >= self.high):
            raise check.refuse("box", "high", f"be above low = {self.low}", self.high)

    @property
    def bounded(self) -> bool:
        return bool(np.all(np.isfinite(self.low)) and np.all(np.isfinite(self.high)))

    @property
    def title(self) -> str:
        if np.ndim(self.low) or np.ndim(self.high):
            return "box"
        return f"box [{self.low:.16g}, {self.high:.16g}]"

    @property
    def bounds(self) -> tuple[Any, Any]:
        return self.low, self.high

    def check(self, size: int) -> None:
        for name, ends in (("low", self.low), ("high", self.high)):
            if np.ndim(ends) and np.size(ends) != size:
                wanted = f"be a number, or one for each of {size} parameters"
                raise check.refuse("box", name, wanted, ends)

    def project(self, params: Any) -> Any:
        return projections.projection_box(params, self.low, self.high)

    def support(self, gradient: Any) -> Any:
        slope = np.asarray(gradient)
        return np.sum(np.maximum(slope * self.low, slope * self.high))

    def corners(self, size: int) -> np.ndarray | None:
        if size > CORNERS:
            return None
        ends = zip(np.broadcast_to(self.low, size), np.broadcast_to(self.high, size), strict=True)
        return np.array(list(itertools.product(*ends)), float)

    def farthest(self, params: np.ndarray) -> float:
        ends = np.maximum(np.abs(params - self.low), np.abs(params - self.high))
        return float(np.linalg.norm(ends))


@value
class l2_ball(Domain):
    """Euclidean norm at most `radius`.

    >>> l2_ball(2).support(np.array([3.0, 4.0]))
    np.float64(10.0)
    """

    radius: float = positive()

    @property
    def title(self) -> str:
        return f"l2 ball of radius {self.radius:.16g}"

    @property
    def reach(self) -> Any:
        return self.radius

    def project(self, params: Any) -> Any:
        return projections.projection_l2_ball(params, self.radius)

    def support(self, gradient: Any) -> Any:
        return self.radius * np.linalg.norm(gradient)

    def farthest(self, params: np.ndarray) -> float:
        return float(self.radius + np.linalg.norm(params))


@value
class simplex(Domain):
    """Non-negative coordinates that sum to one.

    >>> simplex().unit_sum
    True
    """

    unit_sum = True

    @property
    def title(self) -> str:
        return "simplex"

    def project(self, params: Any) -> Any:
        return projections.projection_simplex(params, 1.0)

    def support(self, gradient: Any) -> Any:
        return np.max(gradient)

    def corners(self, size: int) -> np.ndarray:
        return np.eye(size)


@value
class l1_ball(Domain):
    """Absolute values that sum to at most `radius`.

    >>> l1_ball(2).corners(2).tolist()
    [[2.0, 0.0], [0.0, 2.0], [-2.0, -0.0], [-0.0, -2.0]]
    """

    radius: float = positive()

    @property
    def title(self) -> str:
        return f"l1 ball of radius {self.radius:.16g}"

    def project(self, params: Any) -> Any:
        return projections.projection_l1_ball(params, self.radius)

    def support(self, gradient: Any) -> Any:
        return self.radius * np.max(np.abs(gradient))

    def corners(self, size: int) -> np.ndarray:
        return np.concatenate([self.radius * np.eye(size), -self.radius * np.eye(size)])


def power(owner: str, name: str, p: Any) -> float:
    """Checks the exponent of a norm: in (1, 2], where |x|_p^2 / 2 is strongly convex."""
    p = check.number(owner, name, p)
    if not 1 < p <= 2 or math.isclose(p, 1):
        raise check.refuse(owner, name, "lie in (1, 2]", p)
    return p


@value
class p_ball(Domain):
    """p-norm at most `radius`: the domain of the p-norm map. It has no euclidean projection here.

    >>> p_ball(1.5, radius=1).projects
    False
    """

    p: float = leaf(checked=power)
    radius: float = positive()

    projects = False  # nearest in the map's own divergence, not in euclidean distance

    @property
    def title(self) -> str:
        return f"{self.p:.16g}-norm ball of radius {self.radius:.16g}"

    def project(self, params: Any) -> Any:
        norm = jnp.sum(jnp.abs(params) ** self.p) ** (1 / self.p)
        return params * jnp.minimum(1.0, self.radius / jnp.where(norm > 0, norm, 1.0))

    def support(self, gradient: Any) -> Any:
        return self.radius * _norm(np.asarray(gradient), self.p / (self.p - 1))

    def ball_of(self, p: Any) -> bool:
        return bool(p == self.p)


def _norm(g: np.ndarray, p: float) -> Any:
    """The p-norm; scaled, because a large p overflows or underflows."""
    largest = np.max(np.abs(g))
    return largest * np.sum(np.abs(g / (largest or 1)) ** p) ** (1 / p)
