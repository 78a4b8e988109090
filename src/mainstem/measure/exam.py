"""How good the final models are on samples that were held out, each client in its own task."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.base import At, Problem, Sample, Stream, cast, flat


def examined(
    problem: Problem, stream: Stream, seeds: list[int], models: np.ndarray
) -> dict[str, np.ndarray]:
    """Each metric, weighted over the samples as the exam says: [clients], or [seeds, clients]."""
    assert stream.exam is not None
    dtype = str(models.dtype)
    many = models.ndim == 3
    with jax.enable_x64(dtype == "float64"):
        vectors = flat(problem)
        at = At(jnp.int32(1), jnp.int32(0), jnp.zeros(2, jnp.uint32))

        def one(model: Any, shown: Any, hidden: Any) -> Any:
            return problem.metrics(vectors.decide(model, shown, at), Sample(shown, hidden))

        over_rows = jax.vmap(one, in_axes=(None, 0, 0))

        def client(model: Any, shown: Any, hidden: Any, weights: Any) -> Any:
            return jax.tree.map(lambda each: weights @ each, over_rows(model, shown, hidden))

        marked = jax.jit(jax.vmap(client, in_axes=(0, None, 0, 0)))
        marks = []
        for seed, of_seed in zip(seeds, models if many else models[None], strict=True):
            paper = stream.exam(seed)
            shown, weights = cast((paper.shown, paper.weights.astype(dtype)), dtype)
            marks.append(jax.device_get(marked(of_seed, shown, paper.hidden, weights)))
    joined = {name: np.stack([mark[name] for mark in marks]) for name in marks[0]}
    return joined if many else {name: values[0] for name, values in joined.items()}
