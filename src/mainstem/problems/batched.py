"""Batches: problems with many samples in a step, and their mean loss."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.base import At, Batch, Form, Problem, Sample
from mainstem.errors import BadData
from mainstem.problems.wrapped import Wrapped
from mainstem.random import Key
from mainstem.value import part, value


@value
class batched(Wrapped):
    r"""The problem `of` for streams with a batch of n samples in each step; the loss is the mean.

    .. math:: \ell(w) = \frac{1}{n} \sum_{i=1}^n \ell_{\mathrm{of}}(w; z_i)

    The first axis of the arrays is the batch; `count`, if given, is the number of real samples in it.

    >>> from mainstem.problems import logistic
    >>> batched(logistic(features=2)).parameters
    3
    """

    of: Problem = part(Problem, "logistic(features=2)")

    @property
    def classes(self) -> int | None:
        return self.of.classes

    @property
    def form(self) -> Any:
        return None if self.of.form is None else self._form

    @property
    def informative(self) -> Any:
        return None if self.of.informative is None else self._informative

    @property
    def scored(self) -> Any:
        return None if self.of.scored is None else self._scored

    def init(self, key: Key) -> Any:
        return self.of.init(key)

    def decide(self, params: Any, shown: Any, at: At) -> Any:
        return jax.vmap(lambda x: self.of.decide(params, x, at))(shown)

    def reveal(self, decision: Any, sample: Sample) -> Batch:
        shares = _weights(sample)
        revealed = jax.vmap(self.of.reveal)(decision, _items(sample))
        if sample.count is None:
            return Batch(revealed, shares)

        def kept(x: Any) -> Any:  # what is not real may contain anything, even NaN
            return jnp.where(shares.reshape(-1, *[1] * (x.ndim - 1)) > 0, x, jnp.zeros_like(x))

        return Batch(jax.tree.map(kept, revealed), shares)

    def loss(self, params: Any, seen: Batch) -> Any:
        return _mean(jax.vmap(lambda item: self.of.loss(params, item))(seen.items), seen.weights)

    def metrics(self, decision: Any, sample: Sample) -> Mapping[str, Any]:
        each = jax.vmap(self.of.metrics)(decision, _items(sample))
        return {name: _mean(values, _weights(sample)) for name, values in each.items()}

    def check(self, shown: Any, hidden: Any) -> None:
        if any(np.ndim(leaf) < 3 for leaf in jax.tree.leaves(shown)):
            wanted = "several samples in a step, such as those of streams.in_batches(stream, 5)"
            raise BadData(f"batched: wants {wanted}")
        self.of.check(*jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (shown, hidden)))

    def _form(self, seen: Batch) -> Form:
        return Form(*(_mean(each, seen.weights) for each in jax.vmap(self.of.form)(seen.items)))

    def _scored(self, params: Any, seen: Batch) -> tuple[Any, Any]:
        """Those of each sample; NaN for what is not real."""
        both = jax.vmap(lambda item: self.of.scored(params, item))(seen.items)
        score, label = (jnp.where(seen.weights > 0, each, jnp.nan) for each in both)
        return score, label

    def _informative(self, seen: Batch) -> Any:
        return jnp.any(jax.vmap(self.of.informative)(seen.items) & (seen.weights > 0))


def _items(sample: Sample) -> Sample:
    return Sample(sample.shown, sample.hidden)


def _weights(sample: Sample) -> Any:
    length = len(jax.tree.leaves((sample.shown, sample.hidden))[0])
    if sample.count is None:
        return jnp.full(length, 1 / length)
    real = (jnp.arange(length) < sample.count).astype(jnp.result_type(float))
    return real / jnp.maximum(sample.count, 1)


def _mean(values: Any, weights: Any) -> Any:
    """The weighted mean; values of weight 0 may be anything, even NaN."""
    spread = weights.reshape(-1, *[1] * (values.ndim - 1))
    return jnp.sum(jnp.where(spread > 0, spread * values, 0), axis=0)
