"""Common types: models, samples, batches, quadratic losses, and a step at a client."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.random import Key

Params = jax.Array  # a flat vector
DTYPES = ("float32", "float64")  # what a run may compute in


class Pair(NamedTuple):
    """A model in two parts: the shared part, and the own part, which never leaves its client."""

    shared: Any
    own: Any


class At(NamedTuple):
    """A step at a client: step `t` (1-based), client `k` (0-based), and the random key for both."""

    t: Any
    k: Any
    key: Key


class Sample(NamedTuple):
    """What arrives at one client in one step: `shown` before the decision, `hidden` revealed afterwards.

    `count` is the number of samples: None for one, 0 if none arrived (loss 0, nothing is learnt),
    n for the first n of a batch.
    """

    shown: Any
    hidden: Any
    count: Any = None


class Batch(NamedTuple):
    """What is revealed to a client for a batch of samples, and the weight of each sample."""

    items: Any  # leaves [n, ...]
    weights: Any  # [n], summing to 1; 0: no sample


class Form(NamedTuple):
    """A loss that is quadratic in the model: w'Aw/2 - b'w + c; A a matrix, or a scalar times I.

    Forms add, so a mean over many samples costs no more to evaluate than one sample.
    """

    matrix: Any
    vector: Any
    constant: Any

    def value(self, params: Any) -> Any:
        """The loss at one model."""
        moved = self.matrix * params if np.ndim(self.matrix) == 0 else self.matrix @ params
        return jnp.sum(params * (0.5 * moved - self.vector)) + self.constant  # faster than dots

    def times(self, factor: Any) -> "Form":
        """The loss times a number."""
        return Form(*(factor * part for part in self))


def joined(features: Any, *numbers: Any) -> Any:
    """One vector: features, then single numbers."""
    return jnp.concatenate([features, jnp.stack([jnp.asarray(n, features.dtype) for n in numbers])])


def constant(values: Any) -> jax.Array:
    """Numbers in the dtype in force, traced or not.

    Host arrays are cast on the host, because JAX 0.10 stores one device copy of a NumPy array and returns
    it in either mode of `enable_x64`.
    """
    dtype = jnp.result_type(float)
    if isinstance(values, jax.Array):
        return values.astype(dtype)
    return jnp.asarray(np.asarray(values).astype(dtype))


def of_client(numbers: Any, k: Any) -> Any:
    """The number of client k, if there is one for each client; else the common number."""
    return numbers if jnp.ndim(numbers) == 0 else jnp.asarray(numbers)[k]


def cast(tree: Any, dtype: str) -> Any:
    """Host arrays with floating-point numbers cast to `dtype`; integers are unchanged."""

    def one(x: Any) -> np.ndarray:
        x = np.asarray(x)
        return x.astype(dtype, copy=False) if np.issubdtype(x.dtype, np.floating) else x

    return jax.tree.map(one, tree)


SEVERAL = At(None, 0, 0)  # type: ignore[arg-type]  # vmap axes: one step, several clients and keys
