"""Summaries of samples in FedRes.ERM: what server and clients store of a sample, and predict."""

import abc
from typing import Any, ClassVar

import jax.numpy as jnp

from mainstem.base import Pair, Params, Residual, joined
from mainstem.value import Value, value


class SampleSummary(Value):
    """The numbers that a client stores of a sample, and those that it sends."""

    sends_model: ClassVar[bool]  # whether the client's own model is sent with it

    @abc.abstractmethod
    def lengths(self, known: Residual) -> tuple[int, int]:
        """How many numbers a client stores of a sample, and how many it sends."""

    @abc.abstractmethod
    def stored(self, known: Residual, pair: Pair, seen: Any) -> Params:
        """What the client stores of a sample on which it predicted with these models."""

    @abc.abstractmethod
    def sent(self, known: Residual, pair: Pair, seen: Any) -> Params:
        """What the client sends of it."""

    @abc.abstractmethod
    def own_score(self, known: Residual, mine: Params, partner: Params, summary: Any) -> Any:
        """The prediction of a client's own model on a stored sample, with the partner's."""

    @abc.abstractmethod
    def shared_score(self, known: Residual, mine: Params, partner: Params, summary: Any) -> Any:
        """The prediction of the shared model on a sample that was sent, with the partner's."""


@value
class Whole(SampleSummary):
    """(global features, local features, label), and the own model: both sides know the joint loss."""

    sends_model = True

    def lengths(self, known: Residual) -> tuple[int, int]:
        return (sum(known.widths) + 1,) * 2

    def stored(self, known: Residual, pair: Pair, seen: Any) -> Params:
        x, local, label = known.read(seen)
        return joined(jnp.concatenate([x, local]), label)

    def sent(self, known: Residual, pair: Pair, seen: Any) -> Params:
        return self.stored(known, pair, seen)

    def own_score(self, known: Residual, mine: Params, partner: Params, summary: Any) -> Any:
        return self.shared_score(known, partner, mine, summary)

    def shared_score(self, known: Residual, mine: Params, partner: Params, summary: Any) -> Any:
        width = known.widths[0]
        return known.shared(mine, summary[:width]) + known.own(partner, summary[width:-1])


@value
class Predicted(SampleSummary):
    """The features of one side, the other side's prediction at that time, and the label."""

    sends_model = False

    def lengths(self, known: Residual) -> tuple[int, int]:
        return known.widths[1] + 2, known.widths[0] + 2

    def stored(self, known: Residual, pair: Pair, seen: Any) -> Params:
        x, local, label = known.read(seen)
        return joined(local, known.shared(pair.shared, x), label)

    def sent(self, known: Residual, pair: Pair, seen: Any) -> Params:
        return known.summary(pair.own, seen)

    def own_score(self, known: Residual, mine: Params, partner: Params, summary: Any) -> Any:
        return known.own(mine, summary[:-2]) + summary[-2]

    def shared_score(self, known: Residual, mine: Params, partner: Params, summary: Any) -> Any:
        return known.shared(mine, summary[:-2]) + summary[-2]
