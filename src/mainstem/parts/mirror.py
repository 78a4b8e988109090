r"""Mirror maps: the geometry of a step (Mitra et al. 2021, eq. (3)).

Each map computes argmin <g, x> + B(x, params) / rate over the domain exactly, and accepts only domains
where it can: a euclidean projection after the step of another map is not a mirror step.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from mainstem import check
from mainstem.base import Domain, Mirror, Params
from mainstem.parts.domain import everything, power, simplex
from mainstem.value import leaf, part, value

BOX = "box(-1, 1)"


@value
class euclidean(Mirror):
    """psi = |x|^2 / 2: the projected gradient step.

    >>> from mainstem.parts import box
    >>> import jax.numpy as jnp
    >>> euclidean(box(-3, 3)).step(jnp.array([2.0]), jnp.array([-5.0]), 1.0).tolist()
    [3.0]
    """

    domain: Domain = part(Domain, BOX, default=everything())

    dual_norm = "l2"
    quadratic = True

    def admit(self) -> None:
        if not self.domain.projects:
            raise _inexact("euclidean", "a domain other than p_ball", self.domain)

    @property
    def separable(self) -> bool:
        return self.domain.bounds is not None or not self.domain.bounded

    def step(self, params: Params, gradient: Params, rate: Any) -> Params:
        return self.domain.project(params - rate * gradient)

    def start(self, params: Params) -> Params:
        return self.domain.project(params)

    def divergence(self, start: np.ndarray) -> float | None:
        return self.domain.farthest(start) ** 2 / 2 if self.domain.bounded else None


@value
class entropy(Mirror):
    """psi = sum of x log x: exponentiated gradient on the simplex, or on a box above zero.

    >>> entropy().step(jnp.array([0.5, 0.5]), jnp.array([0.0, 100.0]), 1.0).tolist()
    [1.0, 0.0]
    """

    domain: Domain = part(Domain, BOX, default=simplex())

    def admit(self) -> None:
        if not self.domain.unit_sum and self.domain.bounds is None:
            raise _inexact("entropy", "simplex or box", self.domain)
        if self.domain.bounds is not None and np.min(self.domain.bounds[0]) <= 0:
            wanted = "be the simplex or a box with low above 0"
            raise check.refuse("entropy", "domain", wanted, self.domain)

    @property
    def dual_norm(self) -> str:
        return "max" if self.domain.unit_sum else "l2"

    @property
    def strong_convexity(self) -> float:
        """1 in the l1 norm on the simplex; on a box 1 / high in the l2 norm, since psi'' = 1 / x."""
        return 1.0 if self.domain.bounds is None else float(1 / np.max(self.domain.bounds[1]))

    @property
    def separable(self) -> bool:
        return not self.domain.unit_sum

    def step(self, params: Params, gradient: Params, rate: Any) -> Params:
        if self.domain.bounds is not None:
            return jnp.clip(params * jnp.exp(-rate * gradient), *self.domain.bounds)
        weight = params * jnp.exp(-rate * (gradient - jnp.min(gradient)))  # the shift cancels
        return weight / jnp.sum(weight)

    def start(self, params: Params) -> Params:
        """On the simplex: `params` if it is a positive point of it, else the uniform point."""
        if self.domain.bounds is not None:
            return self.domain.project(params)
        inside = jnp.all(params > 0) & (jnp.abs(jnp.sum(params) - 1) < 1e-3)
        return jnp.where(inside, params / jnp.sum(params), 1 / params.size)

    def divergence(self, start: np.ndarray) -> float | None:
        if start.min() <= 0:
            raise check.refuse("divergence", "start", "be positive for the entropy", start)
        if self.domain.bounds is None:
            return float(-np.log(start.min()))
        ends = np.stack([np.broadcast_to(end, start.shape) for end in self.domain.bounds])
        return float(np.sum(np.max(ends * np.log(ends / start) - ends + start, axis=0)))


@value
class p_norm(Mirror):
    """psi = |x|_p^2 / 2 with p in (1, 2], on the entire space or on a ball of the same norm.

    The map violates Assumption 2 of Mitra et al. for some triples: no theorem is claimed for it.

    >>> p_norm(1.5).domain
    everything()
    """

    p: float = leaf(checked=power)
    domain: Domain = part(Domain, BOX, default=everything())

    def admit(self) -> None:
        if not self.domain.ball_of(self.p):
            raise _inexact("p_norm", f"everything or p_ball({self.p:g}, radius)", self.domain)

    def step(self, params: Params, gradient: Params, rate: Any) -> Params:
        moved = _link(params, self.p) - rate * gradient
        return self.domain.project(_link(moved, self.p / (self.p - 1)))

    def start(self, params: Params) -> Params:
        return self.domain.project(params)


def _inexact(owner: str, wanted: str, domain: Domain) -> Exception:
    return check.refuse(owner, "domain", f"be {wanted}, where its step is exact", domain)


def _link(x: Params, p: Any) -> Params:
    """The gradient of |x|_p^2 / 2; its inverse is the gradient for the dual norm."""
    largest = jnp.max(jnp.abs(x))
    unit = x / jnp.where(largest > 0, largest, 1)
    norm = jnp.sum(jnp.abs(unit) ** p) ** (1 / p)
    scale = jnp.where(norm > 0, norm, 1) ** (2 - p)
    return largest * jnp.sign(unit) * jnp.abs(unit) ** (p - 1) * scale
