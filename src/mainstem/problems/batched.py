"""Many samples a step: the mean loss over the batch that a client holds."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from mainstem import check as checks
from mainstem.base import At, Batch, Form, Problem, Sample
from mainstem.spec import recorded


@recorded
def batched(of: Problem) -> Problem:
    """`of` for streams that bring a batch in each step: its loss is the mean over the batch.

    A sample's arrays have the batch first; its `count`, if given, is how many of them are real.

    >>> from mainstem.problems import logistic
    >>> batched(logistic(features=2)).size
    3
    """
    checks.instance("batched", "of", of, Problem, "logistic(features=2)")

    def items(sample: Sample) -> Sample:
        return Sample(sample.shown, sample.hidden)

    def weights(sample: Sample) -> Any:
        length = len(jax.tree.leaves((sample.shown, sample.hidden))[0])
        if sample.count is None:
            return jnp.full(length, 1 / length)
        real = (jnp.arange(length) < sample.count).astype(jnp.result_type(float))
        return real / jnp.maximum(sample.count, 1)

    def decide(params: Any, shown: Any, at: At) -> Any:
        return jax.vmap(lambda x: of.decide(params, x, at))(shown)

    def reveal(decision: Any, sample: Sample) -> Batch:
        shares = weights(sample)
        revealed = jax.vmap(of.reveal)(decision, items(sample))
        if sample.count is None:
            return Batch(revealed, shares)

        def kept(x: Any) -> Any:  # what is not real may be anything, even NaN
            return jnp.where(shares.reshape(-1, *[1] * (x.ndim - 1)) > 0, x, jnp.zeros_like(x))

        return Batch(jax.tree.map(kept, revealed), shares)

    def loss(params: Any, seen: Batch) -> Any:
        return _mean(jax.vmap(lambda item: of.loss(params, item))(seen.items), seen.weights)

    def metrics(decision: Any, sample: Sample) -> Mapping[str, Any]:
        each = jax.vmap(of.metrics)(decision, items(sample))
        return {name: _mean(values, weights(sample)) for name, values in each.items()}

    def form(seen: Batch) -> Form:
        assert of.form is not None
        return Form(*(_mean(part, seen.weights) for part in jax.vmap(of.form)(seen.items)))

    def news(seen: Batch) -> Any:
        assert of.news is not None
        return jnp.any(jax.vmap(of.news)(seen.items) & (seen.weights > 0))

    def check(shown: Any, hidden: Any) -> None:
        of.check(*jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (shown, hidden)))

    return of._replace(
        decide=decide,
        reveal=reveal,
        loss=loss,
        metrics=metrics,
        check=check,
        form=None if of.form is None else form,
        together=None,
        linear=None,
        residual=None,
        features=None,
        news=None if of.news is None else news,
    )


def _mean(values: Any, weights: Any) -> Any:
    """The weighted mean; what counts for nothing may be anything."""
    spread = weights.reshape(-1, *[1] * (values.ndim - 1))
    return jnp.sum(jnp.where(spread > 0, spread * values, 0), axis=0)
