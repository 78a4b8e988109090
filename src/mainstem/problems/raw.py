"""Problems without features: nothing is shown, the decision is the model, and a hidden vector defines the loss."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check
from mainstem.base import At, Domain, Form, Params, Problem, Sample
from mainstem.errors import BadData
from mainstem.parts.domain import box, everything, simplex
from mainstem.random import Key
from mainstem.value import integer, number, positive, value


class Raw(Problem):
    """Base class: the model is one vector, and a hidden vector of the same length defines its loss."""

    convex = True
    rounding = None

    def decide(self, params: Any, shown: Any, at: At) -> Any:
        return params

    def reveal(self, decision: Any, sample: Sample) -> Any:
        return sample.hidden

    def check(self, shown: Any, hidden: np.ndarray) -> None:
        if np.shape(hidden)[1:] != (self.parameters,):
            raise BadData(
                f"{self.call()[0]}: wants hidden vectors of length {self.parameters}, "
                f"the stream has shape {np.shape(hidden)[1:]}"
            )


BOX = jax.tree.structure(box(-1, 1))


@value
class quadratic(Raw):
    r"""A squared distance to a hidden target a, on the entire space or on the box [low, high].

    .. math:: \ell(x) = \frac{c}{2} |x - a|^2

    with c the `curvature`. With `streams.alternating` these are the losses of Mitra et al. 2021,
    Section VII.

    >>> quadratic(dimension=1, low=-3, high=3).domain
    box(low=-3.0, high=3.0)
    """

    dimension: int = integer(default=1, least=1)
    curvature: float = positive(default=1.0)
    low: float | None = number(default=None)
    high: float | None = number(default=None)

    def admit(self) -> None:
        low, high = self.low, self.high
        if low is None and high is None:
            return
        if low is None or high is None:
            raise check.refuse("quadratic", "low and high", "be given together", (low, high))
        if low >= high:
            raise check.refuse("quadratic", "high", f"be above low = {low}", high)

    @property
    def domain(self) -> Domain:
        if self.low is None:
            return everything()
        return jax.tree.unflatten(BOX, (self.low, self.high))  # unchecked: the bounds may be traced

    def init(self, key: Key) -> Params:
        return jnp.asarray(self.domain.project(jnp.zeros(self.dimension)))

    def loss(self, params: Any, seen: Any) -> Any:
        return 0.5 * self.curvature * jnp.sum((params - seen) ** 2)

    def form(self, seen: Any) -> Form:
        curvature = self.curvature
        return Form(jnp.asarray(curvature), curvature * seen, 0.5 * curvature * jnp.sum(seen**2))


@value
class experts(Raw):
    r"""A mixture p of `count` experts; the loss :math:`\ell_i` of each expert is hidden.

    .. math:: \ell(p) = \sum_i p_i \ell_i

    >>> experts(count=4).domain
    simplex()
    """

    count: int = integer(least=2)

    domain = simplex()

    def init(self, key: Key) -> Params:
        return jnp.full(self.count, 1 / self.count)

    def loss(self, params: Any, seen: Any) -> Any:
        return params @ seen

    def form(self, seen: Any) -> Form:
        return Form(jnp.asarray(0.0), -seen, jnp.asarray(0.0))
