"""Step sizes: how far to go at step t."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from mainstem import check
from mainstem.base import Params, Step
from mainstem.errors import MainstemError
from mainstem.spec import Spec, recorded


def _schedule(at: Callable[[Any], Any]) -> Step:
    """A rate that depends on t alone, in the precision in force."""

    def rate(state: Any, gradient: Any, t: Any) -> tuple[Any, Any]:
        return at(jnp.asarray(t, jnp.result_type(float))), state

    return Step(init=lambda params: (), rate=rate, schedule=True)


@recorded
def constant(rate: float) -> Step:
    """The same rate at every step."""
    rate = check.positive("constant", "rate", rate)
    return _schedule(lambda t: rate)


@recorded
def inverse_sqrt(scale: float) -> Step:
    """scale / sqrt(t): anytime regret of order sqrt(T) on convex losses."""
    scale = check.positive("inverse_sqrt", "scale", scale)
    return _schedule(lambda t: scale / jnp.sqrt(t))


@recorded
def inverse_time(sigma: float, shift: float = 0.0) -> Step:
    """2 / (sigma (t + shift)): logarithmic regret on strongly convex losses.

    Mitra et al. 2021, Theorem 2 with the curvature convention of `docs/algorithms/fedomd.md`: for
    the euclidean map a loss with curvature c has sigma = 2 c, so the step is 1 / (c t). A `shift`
    of the order of the condition number keeps the first steps stable.

    >>> rate, _ = inverse_time(sigma=2.0).rate((), None, 4.0)
    >>> float(rate)
    0.25
    """
    sigma = check.positive("inverse_time", "sigma", sigma)
    shift = check.at_least("inverse_time", "shift", shift, 0)
    return _schedule(lambda t: 2 / (sigma * (t + shift)))


@recorded
def adagrad(scale: float, floor: float = 1e-8) -> Step:
    """scale / sqrt(floor + sum of squared gradients), for each coordinate of its own."""
    scale = check.positive("adagrad", "scale", scale)
    floor = check.positive("adagrad", "floor", floor)

    def rate(squares: Params, gradient: Params, t: Any) -> tuple[Params, Params]:
        squares = squares + gradient**2
        return scale / jnp.sqrt(squares + floor), squares

    return Step(init=jnp.zeros_like, rate=rate, schedule=False, coordinatewise=True)


def as_step(owner: str, step: Step | float | str) -> Step:
    """`step` itself, a constant step if it is a number, or one that `simulate` settles: "auto"."""
    if isinstance(step, Step):
        return step
    if step == "auto":
        return Step(init=lambda params: (), rate=_unsettled, schedule=True, spec=Spec("auto", {}))
    if isinstance(step, str):
        raise check.refuse(owner, "step", 'be a number above 0, a step-size rule or "auto"', step)
    check.positive(owner, "step", step)
    return constant(step)


def _unsettled(state: Any, gradient: Any, t: Any) -> Any:
    raise MainstemError('step="auto" is settled by simulate, which looks at the stream first')
