"""What a client of FedRes tells the server of a period's samples: the samples themselves, or their gradient.

The server needs the global features, the client's own prediction and the label to form the shared gradient
(Agarwal et al. 2020, Section 2). A place that no sample came for has a label that is none.
"""

import abc
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from mainstem.base import Collect, Collected, Gradient, Pair, Params, Problem, Residual, joined
from mainstem.errors import BadParameter
from mainstem.parts.collect import each, total
from mainstem.value import Value, flag, integer, value


class Message(Value):
    """What is told of the samples of `period` steps; `own`: whether clients have a part of their own."""

    period: int
    own: bool
    collect: ClassVar[Collect]

    @abc.abstractmethod
    def nothing(self, gradient: Gradient, shared: Params) -> Any:
        """The message of a client that has seen nothing."""

    @abc.abstractmethod
    def quiet(self, told: Any) -> Any:
        """A message of this shape that says nothing."""

    @abc.abstractmethod
    def add(self, told: Any, gradient: Gradient, pair: Pair, slope: Pair, seen: Any, t: Any) -> Any:
        """The message with what was seen at step t, with the models `pair` and the gradient `slope`."""

    @abc.abstractmethod
    def slope(self, got: Collected, gradient: Gradient, params: Params | None) -> Params:
        """The sum of the clients' mean shared gradients: each at its sender's model, or all at `params`."""


def unsaid(dtype: Any) -> Any:
    """The label of a sample that was not seen: finite, so that messages are, and no label."""
    return jnp.finfo(dtype).max


def residual_of(owner: str, of: Gradient | Problem) -> Residual:
    """How the problem's prediction is a sum; refused if it is not."""
    if of.residual is None:
        wanted = "predict by the sum of two parts, such as problems.personal(8, 8)"
        raise BadParameter(f"{owner}: to send samples, the problem must {wanted}")
    return of.residual


@value
class Samples(Message):
    """(global features, own prediction, label) of each step; without an own part two of the three."""

    period: int = integer(least=1)
    own: bool = flag()

    collect = each()

    def nothing(self, gradient: Gradient, shared: Params) -> Any:
        width = residual_of("fedres", gradient).widths[0] + self.own
        return self.quiet(jnp.zeros((self.period, width + 1), shared.dtype))

    def quiet(self, told: Any) -> Any:
        return jnp.zeros_like(told).at[:, -1].set(unsaid(told.dtype))

    def add(self, told: Any, gradient: Gradient, pair: Pair, slope: Pair, seen: Any, t: Any) -> Any:
        known = residual_of("fedres", gradient)
        x, _, label = known.read(seen)
        new = known.told(pair.own, seen) if self.own else joined(x, label)
        return new[None] if self.period == 1 else told.at[(t - 1) % self.period].set(new)

    def slope(self, got: Collected, gradient: Gradient, params: Params | None) -> Params:
        assert got.each is not None
        told = got.each.bodies.reshape(len(got.each.bodies), self.period, -1)
        over_period = jax.vmap(lambda base, told: self._one(gradient, base, told), (None, 0))
        if params is None:
            slopes = jax.vmap(over_period)(got.each.base, told)
        else:
            slopes = jax.vmap(over_period, (None, 0))(params, told)
        heard = got.each.weights > 0
        return jnp.sum(jnp.where(heard[:, None, None], slopes, 0), axis=(0, 1)) / self.period

    def _one(self, gradient: Gradient, params: Params, told: Params) -> Params:
        """The shared gradient of what was told of one step; nothing told, no slope."""
        known = residual_of("fedres", gradient)
        width = known.widths[0]
        x, label = told[:width], told[-1]
        local = told[width] if self.own else 0.0
        real = label != unsaid(label.dtype)

        def loss(params: Params) -> Any:
            return known.penalty(known.shared(params, x) + local, jnp.where(real, label, 0))

        return jnp.where(real, jax.grad(loss)(params), 0)


@value
class Gradients(Message):
    """The mean gradient in the shared part: smaller, where that has few numbers (Section 4)."""

    period: int = integer(least=1)
    own: bool = flag()

    collect = total()

    def nothing(self, gradient: Gradient, shared: Params) -> Any:
        return jnp.zeros_like(shared)

    def quiet(self, told: Any) -> Any:
        return jnp.zeros_like(told)

    def add(self, told: Any, gradient: Gradient, pair: Pair, slope: Pair, seen: Any, t: Any) -> Any:
        return told + slope.shared / self.period

    def slope(self, got: Collected, gradient: Gradient, params: Params | None) -> Params:
        return got.sum
