"""Solver: minimises a smooth convex function over a domain, with a certificate of the result."""

import math

import numpy as np
import scipy.linalg
import scipy.optimize

from mainstem import check
from mainstem.base import Domain
from mainstem.measure.certificate import (
    Array,
    Function,
    Region,
    Rounding,
    Search,
    Solution,
    norm,
)
from mainstem.measure.newton import Hessian, Model, newton
from mainstem.parts import box, l2_ball

LEAVE = "which models may leave"  # of a domain that no algorithm enforces
LARGEST_HESSIAN = 2000  # above this number of parameters a Hessian costs more than it saves


def minimise(
    value_and_gradient: Function,
    start: Array,
    domain: Domain | Region,
    *,
    curvature: float = 0.0,
    hessian: Hessian | None = None,
    tolerance: float = 1e-9,
    radius: float = 100.0,
    most: int = 20000,
    rounding: Rounding | None = None,
    verified: Rounding | None = None,
    model: Model | None = None,
) -> Solution:
    r"""The smallest value of a smooth convex function over a domain, with a certificate.

    Stops once `gap <= tolerance * max(1, |value|)`, at the limit of rounding, or after `most`
    evaluations; the gap is valid in each case. `curvature` is a known constant of strong convexity.
    If the domain is unbounded and `curvature` is 0, nothing can be certified: the minimum is then
    taken within `radius`, as the statement notes. `rounding(params, value)` bounds the errors of
    the value and of each gradient entry; by default 32 ulp of the value, and for the gradient
    4 ulp of its value at the start. `verified` is the same where it is too costly for every
    evaluation: the proof is repeated with it at the end. `model` is that of the solution of a similar
    function: while it serves, no second derivatives are computed.

    >>> found = minimise(lambda w: (float(w @ w - 2 * w[0]), 2 * w - [2.0, 0.0]), np.zeros(2),
    ...                  l2_ball(0.5), hessian=lambda w: 2 * np.eye(2))
    >>> found.params, round(found.value, 9), found.gap < 1e-9
    (array([0.5, 0. ]), -0.75, True)
    """
    check.at_least("minimise", "curvature", curvature, 0)
    params = np.array(start, dtype=np.float64)
    region = settle(domain, curvature, radius)
    if params.size > LARGEST_HESSIAN:
        hessian = None
    search = Search(value_and_gradient, region, curvature, rounding, tolerance, most)
    if not math.isfinite(search.at(region.project(params))[0]):
        raise check.refuse("minimise", "start", "have a finite value and gradient", start)
    reach = region.reach
    if reach is not None and hessian is not None:
        model = newton(search, hessian, reach, model)
    elif reach is not None:
        quasi_newton(search, reach, 2000)
    budget = 2000 if hessian is None else 200
    while not search.done:
        if region.bounds is not None:
            quasi_newton(search, None, budget)
        if region.bounds is None or budget > 2000:
            accelerated(search, budget)
        if hessian is not None:
            polish(search, hessian)
        budget *= 2
    if verified is not None:
        search.verify(verified)
    return search.solution()._replace(model=model)


def settle(domain: Domain | Region, curvature: float, radius: float) -> Region:
    """The region over which to minimise: bounded unless there is curvature, with its complete title."""
    if isinstance(domain, Region):
        return domain
    if domain.bounded or curvature > 0:
        return Region(domain, domain.title)
    check.positive("minimise", "radius", radius)
    if domain.bounds is not None:
        low, high = domain.bounds
        nearest = np.clip(0.0, low, high)
        title = f"{domain.title} cut to {radius:g} around its point nearest 0 in every entry"
        cut = box(np.maximum(low, nearest - radius), np.minimum(high, nearest + radius))
        return Region(cut, title)
    if domain.reach != math.inf:
        raise check.refuse("minimise", "domain", "have a support or bounds", domain)
    return Region(l2_ball(radius), f"l2 ball of radius {radius:g}, {LEAVE}")


def quasi_newton(search: Search, radius: float | None, most: int) -> None:
    """L-BFGS-B in a box or, with a `radius`, without a constraint until the norm is above twice that radius."""

    def at(params: Array) -> tuple[float, Array]:
        return search.at(params.copy(), inside=radius is None or norm(params) <= radius)

    def stop(params: Array) -> None:
        if search.done or (radius is not None and norm(params) > 2 * radius):
            raise StopIteration

    if search.done:
        return
    bounds = search.region.bounds
    limits = None if bounds is None else scipy.optimize.Bounds(*bounds)
    options = {"maxiter": most, "maxfun": search.most, "maxcor": 20, "ftol": 0.0, "gtol": 0.0}
    found = scipy.optimize.minimize(
        at, search.params, (), "L-BFGS-B", True, bounds=limits, callback=stop, options=options
    )
    search.at(search.region.project(found.x))


def accelerated(search: Search, most: int) -> None:
    """Projected gradient with momentum, backtracking and restarts (O'Donoghue and Candes 2015)."""
    project, last = search.region.project, search.evaluations + most
    point = ahead = search.params
    lipschitz, momentum = steepness(search), 1.0
    while not search.done and search.evaluations < last:
        value, gradient = search.at(ahead, inside=ahead is point)
        if not math.isfinite(value):
            ahead, momentum = point, 1.0
            continue
        while True:
            new = project(ahead - gradient / lipschitz)
            move = new - ahead
            new_value, new_gradient = search.at(new)
            excess = new_value - value - float(gradient @ move)
            if excess < 1e-9 * abs(value):  # below rounding: use the gradients
                excess = float((new_gradient - gradient) @ move) / 2
            if excess <= lipschitz / 2 * float(move @ move) or search.done:
                break
            lipschitz *= 2
        if float((ahead - new) @ (new - point)) > 0:
            ahead, point, momentum = new, new, 1.0
        else:
            momentum, before = (1 + math.sqrt(1 + 4 * momentum**2)) / 2, momentum
            ahead, point = new + (before - 1) / momentum * (new - point), new
        lipschitz *= 0.95


def steepness(search: Search) -> float:
    """A first estimate of the gradient's Lipschitz constant, from one short step along the negative gradient."""
    length = max(norm(search.gradient), 1e-300)
    size = 1e-3 * max(1.0, norm(search.params))
    _, gradient = search.at(search.params - size * search.gradient / length, inside=False)
    return max(norm(gradient - search.gradient) / size, 1e-6 * length / size, 1e-300)


def polish(search: Search, hessian: Hessian) -> None:
    """Semismooth Newton on w = project(w - s g): fast once the active face is found."""
    project, size = search.region.project, search.params.size
    for _ in range(30):
        if search.done:
            return
        params, value, gradient = search.params, search.value, search.gradient
        before = search.gap
        curve = hessian(params)
        step = 1 / max(float(abs(curve).sum(axis=1).max()), 1e-300)
        target = params - step * gradient
        turn = projection_jacobian(search.region, target)
        system = np.eye(size) - turn + step * turn @ curve
        move = scipy.linalg.lstsq(
            system, project(target) - params, cond=1e-13, lapack_driver="gelsy"
        )[0]
        for step in 0.5 ** np.arange(12):
            search.at(project(params + step * move))
            if search.value < value or search.gap <= before / 2:
                break
        else:
            return


def projection_jacobian(region: Region, at: Array) -> Array:
    """The derivative of the projection by finite differences: exact on a polyhedron away from its kinks."""
    if region.bounds is not None:
        return np.diag((region.project(at) == at).astype(np.float64))
    size = 1e-6 * max(1.0, float(abs(at).max()))
    base = region.project(at)
    columns = [(region.project(at + size * unit) - base) / size for unit in np.eye(at.size)]
    return np.stack(columns, axis=1)
