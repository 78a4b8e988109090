"""What passes between the parts: models, occasions, samples, quadratic losses."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.random import Key

Params = jax.Array  # a flat vector


class Pair(NamedTuple):
    """A model in two parts: one that all clients share and one that never leaves its client."""

    shared: Any
    own: Any


class At(NamedTuple):
    """Where and when: step `t` (1-based), client `k` (0-based) and the key of this occasion."""

    t: Any
    k: Any
    key: Key


class Sample(NamedTuple):
    """What one client gets in one step: what it is shown, and what is hidden until it has decided.

    `count` says how many samples this is: None for one, 0 where nothing came (loss 0, nothing is
    learnt), n for the first n of a batch.
    """

    shown: Any
    hidden: Any
    count: Any = None


class Batch(NamedTuple):
    """What a client has seen where many samples came at once, and how much each of them counts."""

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

    Those of the host are cast there, because JAX 0.10 keeps one device copy of a NumPy array and hands it
    out in either mode of `enable_x64`.
    """
    dtype = jnp.result_type(float)
    if isinstance(values, jax.Array):
        return values.astype(dtype)
    return jnp.asarray(np.asarray(values).astype(dtype))


def of_client(numbers: Any, k: Any) -> Any:
    """Client k's number where there is one for each client, else everybody's."""
    return numbers if jnp.ndim(numbers) == 0 else jnp.asarray(numbers)[k]


def cast(tree: Any, dtype: str) -> Any:
    """Host arrays with their floating numbers in `dtype`, whole numbers as they are."""

    def one(x: Any) -> np.ndarray:
        x = np.asarray(x)
        return x.astype(dtype, copy=False) if np.issubdtype(x.dtype, np.floating) else x

    return jax.tree.map(one, tree)


SEVERAL = At(None, 0, 0)  # type: ignore[arg-type]  # one step, several clients, each with its key
