"""Precision: in which numbers the layers of a network are computed."""

from typing import Any

import jax
import jax.numpy as jnp

from mainstem.value import one_of

FULL, BFLOAT16 = "full", "bfloat16"


def precision_field() -> Any:
    """The field of a network: "full" computes its layers in the run's dtype, "bfloat16" with 16 bits."""
    return one_of(FULL, BFLOAT16, default=FULL)


def lowered(precision: str, tree: Any) -> Any:
    """Inputs and parameters as the layers take them."""
    if precision == FULL:
        return tree
    return jax.tree.map(lambda x: jnp.asarray(x).astype(jnp.bfloat16), tree)


def restored(precision: str, scores: Any) -> Any:
    """The scores of the last layer in the run's dtype."""
    return scores if precision == FULL else scores.astype(jnp.result_type(float))
