"""Second derivatives of a weighted mean loss whose scores are linear in the model.

With the features x and the second derivatives h of the penalty in the scores, the matrix of a sample is the
Kronecker product of h and x x': few small products of matrices in the place of one derivative per parameter.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.base import Flat, Linear, Problem

Array = np.ndarray


def linear_hessian(problem: Problem, linear: Linear, seen: Any) -> Callable[[Array, Array], Array]:
    """(model, weights of the samples) -> the second derivatives of the weighted mean loss over `seen`."""
    vectors, size = Flat(problem), problem.parameters
    features = np.asarray(_features(problem, seen), np.float64)
    places = np.asarray(linear.columns(vectors.unravel(jnp.arange(size))), np.int64)
    width, scores = places.shape

    def hessian(params: Array, weights: Array) -> Array:
        each = np.asarray(_bends(problem, params, features, seen)) * weights[:, None, None]
        blocks = np.empty((width, scores, width, scores))
        for a in range(scores):
            for b in range(a + 1):
                block = features.T @ (each[:, a, b, None] * features)
                blocks[:, a, :, b] = blocks[:, b, :, a] = block
        found = np.empty((size, size))
        found[np.ix_(places.ravel(), places.ravel())] = blocks.reshape(size, size)
        found[np.diag_indices(size)] += float(problem.curvature) * weights.sum()
        return found

    return hessian


@jax.jit
def _features(problem: Any, seen: Any) -> Any:
    return jax.vmap(problem.linear.features)(seen)


@jax.jit
def _bends(problem: Any, params: Any, features: Any, seen: Any) -> Any:
    """The second derivatives of each sample's penalty in its scores."""
    scores = features @ problem.linear.columns(Flat(problem).unravel(params))
    return jax.vmap(jax.hessian(problem.linear.penalty))(scores, seen)
