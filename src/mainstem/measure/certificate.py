r"""Certificates: a bound on $f(w) - \min f$ for a smooth convex function, proven from one gradient.

The proof needs one point $w$ with gradient $g$. If $f - \frac{\mu}{2}|\cdot|^2$ is convex, every
direction $v$ gives, with $h = g + \mu v$ and the domain $U$,

$$ f(w) - \min_{u \in U} f(u) \;\le\; \langle h, w\rangle + \max_{u \in U} \langle -h, u\rangle
   + \tfrac{\mu}{2}|v|^2, $$

because $\frac12|u-w|^2 \ge \langle v, u-w\rangle - \frac12|v|^2$. $v = 0$ is the Frank-Wolfe gap
(Jaggi 2013, eq. (2)), $v = -g/\mu$ is $|g|^2 / 2\mu$, and the $v$ that leads to the projection of
$w - g/\mu$ is the tightest. Every point that a search evaluates proves such a bound; the best is used.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from mainstem.base import Domain
from mainstem.errors import BadData

Array = NDArray[np.float64]
Function = Callable[[Array], tuple[float, Array]]
Rounding = Callable[[Array, float], tuple[float, Array]]

EPS = float(np.finfo(np.float64).eps)


@jax.jit  # a solver calls it thousands of times
def _nearest(domain: Domain, params: Any) -> Any:
    return domain.project(params)


class Region(NamedTuple):
    """A domain as the solver uses it: in NumPy's float64, and with a title for the statement."""

    domain: Domain
    title: str

    @property
    def bounded(self) -> bool:
        """Whether the domain is bounded, which `support` requires."""
        return self.domain.bounded

    @property
    def reach(self) -> float | None:
        """The radius of an l2 ball, infinity for `everything()`, otherwise None."""
        return None if self.domain.reach is None else float(self.domain.reach)

    @property
    def bounds(self) -> tuple[Any, Any] | None:
        """The lower and upper bounds of a box, otherwise None."""
        return self.domain.bounds

    def project(self, params: Array) -> Array:
        """The nearest point."""
        if self.reach == math.inf:
            return params
        with jax.enable_x64(True):
            return np.asarray(_nearest(self.domain, params))

    def support(self, gradient: Array) -> float:
        """The largest <gradient, u> over the region."""
        return float(self.domain.support(gradient))


class Solution(NamedTuple):
    """A point, its value, and the proof: `value` - minimum <= `gap`."""

    params: Array
    value: float
    gap: float
    title: str  # "best", and the set over which it is
    note: str = ""  # what else the proof depends on
    model: Any = None  # the last quadratic model of Newton's method: begins the search for a similar function

    def times(self, factor: float) -> "Solution":
        """The solution for a multiple of the function."""
        return self._replace(value=factor * self.value, gap=factor * self.gap)

    @property
    def statement(self) -> str:
        """The title with the certificate."""
        return certified(self.title, self.gap, self.note)


def certified(title: str, gap: float, note: str = "") -> str:
    """The title of a solution with its certificate, rounded up.

    >>> certified("best in the box", 1.234e-7)
    'best in the box (certified within 1.3e-07)'
    """
    if gap == math.inf:
        return f"{title}{note}"
    shown = f"{gap:.1e}"
    if float(shown) < gap:
        shown = f"{gap * (1 + 0.05 / float(shown[:3])):.1e}"
    return f"{title} (certified within {shown}{note})"


def norm(vector: Array) -> float:
    """The Euclidean norm."""
    return float(np.linalg.norm(vector))


def certificate(
    params: Array, gradient: Array, region: Region, curvature: float, error: Array
) -> tuple[float, float]:
    """A bound on f(params) - min f, and the largest amount by which rounding may have reduced it.

    `error` bounds the error of each gradient entry. `params` may be outside the domain.
    """
    ulps = (16 + params.size) * EPS
    if not region.bounded:
        if curvature == 0:
            return math.inf, 0.0
        move = region.project(params - gradient / curvature) - params
        gap = -float(gradient @ move + curvature / 2 * (move @ move))
        wrong = norm(error) * (norm(move) + norm(error) / curvature)
        size = (norm(gradient) + curvature * norm(move)) * (norm(params) + norm(move))
        return max(gap, 0.0), wrong + 4 * EPS * size + ulps * norm(gradient) * norm(move)
    shifts = [np.zeros_like(params)]
    if curvature > 0:
        full = -gradient / curvature
        shifts += [full, region.project(params + full) - params]
    spread = region.support(error) + region.support(-error) + 2 * float(error @ abs(params))
    best = (math.inf, 0.0)
    for move in shifts:
        slope = gradient + curvature * move
        most, bend = region.support(-slope), curvature / 2 * float(move @ move)
        gap = float(slope @ params) + most + bend
        size = float((abs(gradient) + curvature * abs(move)) @ abs(params)) + abs(most) + bend
        best = min(best, (max(gap, 0.0), spread + ulps * size), key=sum)
    return best


class Search:
    """The state of a search: the best point, the highest proven lower bound, the evaluations so far."""

    def __init__(
        self,
        function: Function,
        region: Region,
        curvature: float,
        rounding: Rounding | None,
        tolerance: float,
        most: int,
    ) -> None:
        self.function, self.region, self.curvature = function, region, curvature
        self.rounding, self.tolerance, self.most = rounding, tolerance, most
        self.evaluations = 0
        self.params: Array = np.zeros(0)
        self.gradient: Array = np.zeros(0)
        self.value, self.lower, self.doubt = math.inf, -math.inf, 0.0
        self.proof: tuple[Array, float, Array] | None = None  # what the lower bound rests on

    def at(self, params: Array, inside: bool = True) -> tuple[float, Array]:
        """Value and gradient at `params`; updates the lower bound and, if `inside`, the best point."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            value, gradient = self.function(params)
        value, gradient = float(value), np.asarray(gradient, dtype=np.float64)
        self.evaluations += 1
        if not (math.isfinite(value) and np.all(np.isfinite(gradient))):
            return math.inf, np.zeros_like(params)
        if self.rounding is None:
            error = 4 * EPS * abs(gradient)
            self.rounding = lambda _, value: (32 * EPS * abs(value), error)
        wrong, error = self.rounding(params, value)
        gap, doubt = certificate(params, gradient, self.region, self.curvature, error)
        if value - gap - doubt - wrong > self.lower:
            self.lower, self.proof = value - gap - doubt - wrong, (params, value, gradient)
        if inside and value < self.value:
            self.params, self.value, self.gradient = params, value, gradient
            self.doubt = doubt + wrong
        return value, gradient

    def verify(self, rounding: Rounding) -> None:
        """Repeats the proof with other bounds on rounding errors, at the two points that it rests on."""
        self.doubt = rounding(self.params, self.value)[0]
        if self.proof is not None:
            params, value, gradient = self.proof
            wrong, error = rounding(params, value)
            gap, doubt = certificate(params, gradient, self.region, self.curvature, error)
            self.lower = value - gap - doubt - wrong

    @property
    def gap(self) -> float:
        """A bound on the best value so far minus the minimum."""
        return max(self.value - self.lower, 0.0) + self.doubt

    @property
    def done(self) -> bool:
        """Whether the gap is small enough, or at the limit of rounding, or the evaluations are used up."""
        enough = max(self.tolerance * max(1.0, abs(self.value)), 4 * self.doubt)
        return self.gap <= enough or self.evaluations >= self.most

    def solution(self) -> Solution:
        """The best point, titled with the set over which it is the best."""
        if self.value < self.lower - self.doubt:
            raise BadData(
                "regret: the loss is declared convex and is not: its value "
                f"{self.value:.6g} is below {self.lower:.6g}, which a tangent proves to be the least"
            )
        name = self.region.title
        where = "over everything" if name == "everything" else f"in the {name}"
        return Solution(self.params, self.value, self.gap, f"best {where}")
