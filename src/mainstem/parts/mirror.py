r"""Mirror maps: the geometry of a step (Mitra et al. 2021, eq. (3)).

Each solves argmin over the domain of <g, x> + B(x, params) / rate exactly, and is offered only on
the domains where it can: a euclidean projection after another map's step is not a mirror step.
"""

from typing import Any

import jax.numpy as jnp

from mainstem import check
from mainstem.base import Domain, Mirror, Params
from mainstem.parts import domain as domains
from mainstem.spec import recorded


@recorded
def euclidean(domain: Domain | None = None) -> Mirror:
    """psi = |x|^2 / 2: the projected gradient step.

    >>> from mainstem.parts import box
    >>> import jax.numpy as jnp
    >>> euclidean(box(-3, 3)).step(jnp.array([2.0]), jnp.array([-5.0]), 1.0).tolist()
    [3.0]
    """
    chosen = _admit("euclidean", domain, domains.everything(), but="p_ball")

    def step(params: Params, gradient: Params, rate: Any) -> Params:
        return chosen.project(params - rate * gradient)

    separable = chosen.bounds is not None or chosen.support is None
    return Mirror(step, start=chosen.project, domain=chosen, separable=separable)


@recorded
def entropy(domain: Domain | None = None) -> Mirror:
    """psi = sum of x log x: exponentiated gradient on the simplex, or on a box above zero."""
    chosen = _admit("entropy", domain, domains.simplex(), only=("simplex", "box"))
    bounds = chosen.bounds
    if bounds is None:
        return Mirror(_exponentiated, start=_interior, domain=chosen, separable=False)
    low, high = bounds
    if low <= 0:
        raise check.refuse(
            "entropy", "domain", "be the simplex or a box with low above 0", chosen.name
        )

    def step(params: Params, gradient: Params, rate: Any) -> Params:
        return jnp.clip(params * jnp.exp(-rate * gradient), low, high)

    return Mirror(step, start=chosen.project, domain=chosen, separable=True)


def _exponentiated(params: Params, gradient: Params, rate: Any) -> Params:
    weight = params * jnp.exp(-rate * (gradient - jnp.min(gradient)))  # the shift cancels
    return weight / jnp.sum(weight)


def _interior(params: Params) -> Params:
    """`params` if it is a positive point of the simplex, else the uniform one."""
    inside = jnp.all(params > 0) & (jnp.abs(jnp.sum(params) - 1) < 1e-3)
    return jnp.where(inside, params / jnp.sum(params), 1 / params.size)


@recorded
def p_norm(p: float, domain: Domain | None = None) -> Mirror:
    """psi = |x|_p^2 / 2 with p in (1, 2], on everything or on its own ball.

    The map breaks Assumption 2 of Mitra et al. for some triples: no theorem is claimed for it.
    """
    p = domains.power("p_norm", p)
    chosen = _admit("p_norm", domain, domains.everything(), only=("everything", "p_ball"))
    if chosen.spec.name == "p_ball" and chosen.spec.arguments["p"] != p:
        raise check.refuse(
            "p_norm", "domain", f"be everything or p_ball({p:g}, radius)", chosen.name
        )
    dual = p / (p - 1)

    def step(params: Params, gradient: Params, rate: Any) -> Params:
        moved = _link(params, p) - rate * gradient
        return chosen.project(_link(moved, dual))

    return Mirror(step, start=chosen.project, domain=chosen, separable=False)


def _link(x: Params, p: float) -> Params:
    """The gradient of |x|_p^2 / 2; that of the dual norm is its inverse."""
    largest = jnp.max(jnp.abs(x))
    unit = x / jnp.where(largest > 0, largest, 1)
    norm = jnp.sum(jnp.abs(unit) ** p) ** (1 / p)
    scale = jnp.where(norm > 0, norm, 1) ** (2 - p)
    return largest * jnp.sign(unit) * jnp.abs(unit) ** (p - 1) * scale


def _admit(
    owner: str, domain: Domain | None, default: Domain, *, only: Any = None, but: str | None = None
) -> Domain:
    """`domain` (or the default), if this map's step is exact on it."""
    chosen = default if domain is None else domain
    check.instance(owner, "domain", chosen, Domain, "box(-1, 1)")
    if (only is not None and chosen.spec.name not in only) or chosen.spec.name == but:
        allowed = "a domain other than p_ball" if only is None else " or ".join(only)
        raise check.refuse(owner, "domain", f"be {allowed}, where its step is exact", chosen.name)
    return chosen
