"""Evaluation of the final models on held-out samples, each client in its own task."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.base import At, Flat, Problem, Sample, Stream, cast


def examined(
    problem: Problem, stream: Stream, seeds: list[int], models: np.ndarray
) -> dict[str, np.ndarray]:
    """Each metric, summed over the samples with the weights of the exam: [clients], or [seeds, clients]."""
    assert stream.exam is not None
    dtype = str(models.dtype)
    many = models.ndim == 3
    with jax.enable_x64(dtype == "float64"):
        vectors = Flat(problem)
        at = At(jnp.int32(1), jnp.int32(0), jnp.zeros(2, jnp.uint32))

        def one(model: Any, shown: Any, hidden: Any) -> Any:
            return problem.metrics(vectors.decide(model, shown, at), Sample(shown, hidden))

        def client(model: Any, shown: Any, hidden: Any, weights: Any) -> Any:
            marked = jax.vmap(one, in_axes=(None, 0, 0))(model, shown, hidden)
            return jax.tree.map(lambda each: weights @ each, marked)

        def scored(model: Any, shown: Any, hidden: Any, weights: Any) -> Any:
            """The same for a sum of linear parts: one matrix product for all clients and rows."""
            assert problem.linear is not None
            features = problem.linear.features
            extended = jax.vmap(lambda x: features(Sample(x, 0)))(shown)
            scores = jnp.matmul(model, extended.T, precision="highest")
            over_rows = jax.vmap(lambda s, x, y: problem.metrics(s, Sample(x, y)))
            marked = jax.vmap(over_rows, in_axes=(0, None, 0))(scores, shown, hidden)
            return jax.tree.map(lambda each: jnp.sum(weights * each, axis=1), marked)

        linear = problem.residual is not None and problem.linear is not None
        marked = jax.jit(scored if linear else jax.vmap(client, in_axes=(0, None, 0, 0)))
        marks = []
        for seed, of_seed in zip(seeds, models if many else models[None], strict=True):
            paper = stream.exam(seed)
            shown, weights = cast((paper.shown, paper.weights.astype(dtype)), dtype)
            marks.append(jax.device_get(marked(of_seed, shown, paper.hidden, weights)))
    joined = {name: np.stack([mark[name] for mark in marks]) for name in marks[0]}
    return joined if many else {name: values[0] for name, values in joined.items()}
