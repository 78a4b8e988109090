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

    def held(sample: Sample) -> Any:
        return _length(sample) if sample.count is None else sample.count

    def decide(params: Any, shown: Any, at: At) -> Any:
        return jax.vmap(lambda x: of.decide(params, x, at))(shown)

    def reveal(decision: Any, sample: Sample) -> Batch:
        return Batch(jax.vmap(of.reveal)(decision, items(sample)), held(sample))

    def loss(params: Any, seen: Batch) -> Any:
        return _mean(jax.vmap(lambda item: of.loss(params, item))(seen.items), seen.count)

    def metrics(decision: Any, sample: Sample) -> Mapping[str, Any]:
        each = jax.vmap(of.metrics)(decision, items(sample))
        return {name: _mean(values, held(sample)) for name, values in each.items()}

    def form(seen: Batch) -> Form:
        assert of.form is not None
        return Form(*(_mean(part, seen.count) for part in jax.vmap(of.form)(seen.items)))

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
        residual=None,
    )


def _length(tree: Any) -> int:
    return int(jax.tree.leaves(tree)[0].shape[0])


def _mean(values: Any, count: Any) -> Any:
    """The mean of the first `count` entries."""
    real = jnp.arange(len(values)).reshape(-1, *[1] * (values.ndim - 1)) < count
    return jnp.sum(jnp.where(real, values, 0), axis=0) / jnp.maximum(count, 1)
