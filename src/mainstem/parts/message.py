"""Messages of FedRes: a client sends the samples of a period, or their gradient.

The server needs the global features, the client's own prediction and the label to form the shared gradient
(Agarwal et al. 2020, Section 2). A step without a sample has the label `no_label`.
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
    """A summary of the samples of `period` steps. `own`: whether clients have an own part of the model."""

    period: int
    own: bool
    collect: ClassVar[Collect]

    @abc.abstractmethod
    def initial(self, gradient: Gradient, shared: Params) -> Any:
        """The summary before the first sample."""

    @abc.abstractmethod
    def cleared(self, summary: Any) -> Any:
        """A summary of this shape without samples."""

    @abc.abstractmethod
    def add(
        self, summary: Any, gradient: Gradient, pair: Pair, slope: Pair, seen: Any, t: Any
    ) -> Any:
        """The summary with the sample of step t added. `pair` are the models, `slope` their gradient."""

    @abc.abstractmethod
    def slope(self, got: Collected, gradient: Gradient, params: Params | None) -> Params:
        """The sum of the clients' mean shared gradients: each at its sender's model, or all at `params`."""


def no_label(dtype: Any) -> Any:
    """The label of a step without a sample. It is finite, so that messages are finite."""
    return jnp.finfo(dtype).max


def residual_of(owner: str, of: Gradient | Problem) -> Residual:
    """The two parts of the problem's prediction. Raises `BadParameter` if it has no such parts."""
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

    def initial(self, gradient: Gradient, shared: Params) -> Any:
        width = residual_of("fedres", gradient).widths[0] + self.own
        return self.cleared(jnp.zeros((self.period, width + 1), shared.dtype))

    def cleared(self, summary: Any) -> Any:
        return jnp.zeros_like(summary).at[:, -1].set(no_label(summary.dtype))

    def add(
        self, summary: Any, gradient: Gradient, pair: Pair, slope: Pair, seen: Any, t: Any
    ) -> Any:
        known = residual_of("fedres", gradient)
        x, _, label = known.read(seen)
        new = known.summary(pair.own, seen) if self.own else joined(x, label)
        return new[None] if self.period == 1 else summary.at[(t - 1) % self.period].set(new)

    def slope(self, got: Collected, gradient: Gradient, params: Params | None) -> Params:
        assert got.each is not None
        summary = got.each.bodies.reshape(len(got.each.bodies), self.period, -1)
        over_period = jax.vmap(lambda base, summary: self._one(gradient, base, summary), (None, 0))
        if params is None:
            slopes = jax.vmap(over_period)(got.each.base, summary)
        else:
            slopes = jax.vmap(over_period, (None, 0))(params, summary)
        heard = got.each.weights > 0
        return jnp.sum(jnp.where(heard[:, None, None], slopes, 0), axis=(0, 1)) / self.period

    def _one(self, gradient: Gradient, params: Params, summary: Params) -> Params:
        """The shared gradient of one step; zero if the step has no sample."""
        known = residual_of("fedres", gradient)
        width = known.widths[0]
        x, label = summary[:width], summary[-1]
        local = summary[width] if self.own else 0.0
        real = label != no_label(label.dtype)

        def loss(params: Params) -> Any:
            return known.penalty(known.shared(params, x) + local, jnp.where(real, label, 0))

        return jnp.where(real, jax.grad(loss)(params), 0)


@value
class Gradients(Message):
    """The mean gradient of the shared part: smaller, if that part has few parameters (Section 4)."""

    period: int = integer(least=1)
    own: bool = flag()

    collect = total()

    def initial(self, gradient: Gradient, shared: Params) -> Any:
        return jnp.zeros_like(shared)

    def cleared(self, summary: Any) -> Any:
        return jnp.zeros_like(summary)

    def add(
        self, summary: Any, gradient: Gradient, pair: Pair, slope: Pair, seen: Any, t: Any
    ) -> Any:
        return summary + slope.shared / self.period

    def slope(self, got: Collected, gradient: Gradient, params: Params | None) -> Params:
        return got.sum
