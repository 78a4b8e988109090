"""What either side of FedRes.ERM remembers of a sample, and what that sample then costs it."""

import abc
from typing import Any, ClassVar

import jax.numpy as jnp

from mainstem.base import Pair, Params, Residual, joined
from mainstem.value import Value, value


class Telling(Value):
    """What is kept and sent of a sample."""

    sends_model: ClassVar[bool]  # whether the client's own model goes with it

    @abc.abstractmethod
    def lengths(self, known: Residual) -> tuple[int, int]:
        """How many numbers a client keeps of a sample, and how many it sends."""

    @abc.abstractmethod
    def kept(self, known: Residual, pair: Pair, seen: Any) -> Params:
        """What the client keeps of a sample that it met with these models."""

    @abc.abstractmethod
    def sent(self, known: Residual, pair: Pair, seen: Any) -> Params:
        """What it sends of it."""

    @abc.abstractmethod
    def own_loss(self, known: Residual, mine: Params, partner: Params, told: Any) -> Any:
        """The loss of a client's model on what it has kept."""

    @abc.abstractmethod
    def shared_loss(self, known: Residual, mine: Params, partner: Params, told: Any) -> Any:
        """The loss of the shared model on what was sent."""


@value
class Whole(Telling):
    """(global features, local features, label), and the own model: both sides know the whole loss."""

    sends_model = True

    def lengths(self, known: Residual) -> tuple[int, int]:
        return (sum(known.widths) + 1,) * 2

    def kept(self, known: Residual, pair: Pair, seen: Any) -> Params:
        x, local, label = known.read(seen)
        return joined(jnp.concatenate([x, local]), label)

    def sent(self, known: Residual, pair: Pair, seen: Any) -> Params:
        return self.kept(known, pair, seen)

    def own_loss(self, known: Residual, mine: Params, partner: Params, told: Any) -> Any:
        return self._joint(known, partner, mine, told)

    def shared_loss(self, known: Residual, mine: Params, partner: Params, told: Any) -> Any:
        return self._joint(known, mine, partner, told)

    def _joint(self, known: Residual, shared: Params, own: Params, told: Any) -> Any:
        width = known.widths[0]
        score = known.shared(shared, told[:width]) + known.own(own, told[width:-1])
        return known.penalty(score, told[-1])


@value
class Predicted(Telling):
    """One's own features, what the other side predicted then, and the label."""

    sends_model = False

    def lengths(self, known: Residual) -> tuple[int, int]:
        return known.widths[1] + 2, known.widths[0] + 2

    def kept(self, known: Residual, pair: Pair, seen: Any) -> Params:
        x, local, label = known.read(seen)
        return joined(local, known.shared(pair.shared, x), label)

    def sent(self, known: Residual, pair: Pair, seen: Any) -> Params:
        return known.told(pair.own, seen)

    def own_loss(self, known: Residual, mine: Params, partner: Params, told: Any) -> Any:
        return known.penalty(known.own(mine, told[:-2]) + told[-2], told[-1])

    def shared_loss(self, known: Residual, mine: Params, partner: Params, told: Any) -> Any:
        return known.penalty(known.shared(mine, told[:-2]) + told[-2], told[-1])
