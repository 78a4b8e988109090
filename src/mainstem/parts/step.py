"""Step-size rules: the rate at step t."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from mainstem import check
from mainstem.base import Algorithm, Falling, Params, Step
from mainstem.errors import MainstemError
from mainstem.value import at_least, leaf, parts_of, positive, static, value


def _time(t: Any) -> Any:
    """t in the precision in force."""
    return jnp.asarray(t, jnp.result_type(float))


@value
class constant(Step):
    """The same rate at every step. A plain number is accepted in its place.

    >>> constant(0.1).always
    0.1
    """

    size: float = positive()

    @property
    def always(self) -> float | None:
        return self.size

    def rate(self, state: Any, gradient: Any, t: Any) -> tuple[Any, Any]:
        return self.size, state

    def short(self) -> Any:
        return self.size


@value
class inverse_sqrt(Step):
    """scale / sqrt(t): anytime regret of order sqrt(T) on convex losses.

    >>> float(inverse_sqrt(1.0).rate((), None, 4)[0])
    0.5
    """

    scale: float = positive()

    def rate(self, state: Any, gradient: Any, t: Any) -> tuple[Any, Any]:
        return self.scale / jnp.sqrt(_time(t)), state


@value
class inverse_time(Step):
    """2 / (sigma (t + shift)): logarithmic regret on strongly convex losses.

    Mitra et al. 2021, Theorem 2 with the curvature convention of `docs/algorithms/fedomd.md`: for
    the euclidean map a loss with curvature c has sigma = 2 c, so the step is 1 / (c t). A `shift`
    of the order of the condition number makes the first steps stable.

    >>> float(inverse_time(sigma=2.0).rate((), None, 4.0)[0])
    0.25
    """

    sigma: float = positive()
    shift: float = at_least(0, default=0.0)

    @property
    def falling(self) -> Falling | None:
        return Falling(self.sigma, self.shift)

    def rate(self, state: Any, gradient: Any, t: Any) -> tuple[Any, Any]:
        return 2 / (self.sigma * (_time(t) + self.shift)), state


@value
class adagrad(Step):
    """scale / sqrt(floor + sum of squared gradients), separately for each coordinate.

    >>> adagrad(1.0).coordinatewise
    True
    """

    scale: float = positive()
    floor: float = positive(default=1e-8)

    schedule = False
    coordinatewise = True

    def init(self, params: Params) -> Any:
        return jnp.zeros_like(params)

    def rate(self, state: Any, gradient: Any, t: Any) -> tuple[Any, Any]:
        squares = state + gradient**2
        return self.scale / jnp.sqrt(squares + self.floor), squares


@value
class schedule(Step):
    """A function of t = 1, 2, ..., such as a schedule of optax; no theorem covers it.

    >>> import optax
    >>> float(schedule(optax.linear_schedule(0.5, 0.0, 10)).rate((), None, 5)[0])
    0.25
    """

    function: Callable[[Any], Any] = static()

    def admit(self) -> None:
        if not callable(self.function):
            raise check.refuse("schedule", "function", "be a function of t", self.function)

    def rate(self, state: Any, gradient: Any, t: Any) -> tuple[Any, Any]:
        return self.function(_time(t)), state


@value
class auto(Step):
    """A constant that `simulate` chooses from the first steps of the stream. "auto" is accepted in its place.

    >>> auto().automatic
    True
    """

    automatic = True

    def rate(self, state: Any, gradient: Any, t: Any) -> tuple[Any, Any]:
        raise MainstemError('step="auto" is settled by simulate, which looks at the stream first')

    def short(self) -> Any:
        return "auto"


AnyStep = Step | float | str | Callable[[Any], Any]
"""What may be given as a step: a rule, a number, "auto", or a schedule."""


def as_step(owner: str, name: str, step: Any) -> Step:
    """`step` itself, a constant step if it is a number, a schedule if it is a function, or "auto"."""
    if isinstance(step, Step):
        return step
    if isinstance(step, str) and step == "auto":
        return auto()
    if callable(step):
        return schedule(step)
    if isinstance(step, str):
        wanted = 'be a number above 0, a step-size rule, a schedule or "auto"'
        raise check.refuse(owner, name, wanted, step)
    return constant(check.positive(owner, name, step))


def automatic_steps(algorithm: Algorithm) -> list[str]:
    """The names of the steps of an algorithm that are "auto"."""
    found = parts_of(algorithm)
    return [name for name, each in found if isinstance(each, Step) and each.automatic]


def step_size(default: Any = None) -> Any:
    """A field that accepts all that `as_step` accepts."""
    return leaf(checked=as_step) if default is None else leaf(default, checked=as_step)
