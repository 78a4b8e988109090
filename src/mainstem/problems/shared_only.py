"""Shared-only problems: a model in two parts, with an own part of zero."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from mainstem import check
from mainstem.base import At, Pair, Problem, Sample
from mainstem.problems.wrapped import Wrapped
from mainstem.random import Key
from mainstem.value import part, value


@value
class shared_only(Wrapped):
    r"""The problem `of`, which has a shared and an own part, with the own part fixed at zero.

    .. math:: \ell(w) = \ell_{\mathrm{of}}(w, 0)

    >>> from mainstem.problems import personal
    >>> shared_only(personal(shared=8, own=4)).parameters
    8
    """

    of: Problem = part(Problem, "personal(8, 8)")

    def admit(self) -> None:
        if not self.of.personal:
            raise check.refuse("shared_only", "of", "have an own part", self.of)

    @property
    def shape(self) -> Any:
        return self.of.shape

    @property
    def classes(self) -> int | None:
        return self.of.classes

    @property
    def informative(self) -> Any:
        return self.of.informative

    def init(self, key: Key) -> Any:
        return self.of.init(key).shared

    def decide(self, params: Any, shown: Any, at: At) -> Any:
        return self.of.decide(self._pair(params), shown, at)

    def reveal(self, decision: Any, sample: Sample) -> Any:
        return self.of.reveal(decision, sample)

    def loss(self, params: Any, seen: Any) -> Any:
        return self.of.loss(self._pair(params), seen)

    def metrics(self, decision: Any, sample: Sample) -> Mapping[str, Any]:
        return self.of.metrics(decision, sample)

    def check(self, shown: Any, hidden: Any) -> None:
        self.of.check(shown, hidden)

    def _pair(self, params: Any) -> Pair:
        return Pair(params, jax.tree.map(lambda x: jnp.zeros(x.shape), self.of.shapes.own))
