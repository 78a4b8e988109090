"""Names for authors of new values, in one import: ``from mainstem import extend as mx``.

>>> from mainstem import extend as mx
>>> @mx.value
... class ridge_ball(mx.Domain):
...     radius: float = mx.positive()
...     def project(self, params):
...         return params / mx.jnp.maximum(1, mx.jnp.linalg.norm(params) / self.radius)
>>> ridge_ball(2)
ridge_ball(radius=2.0)
"""

import jax
import jax.numpy as jnp

from mainstem import base, check, parts, random
from mainstem.base import *
from mainstem.parts.fields import (
    any_codec,
    any_downlink,
    any_participation,
    any_sum,
    any_sync,
)
from mainstem.parts.optimizer import as_optimizer
from mainstem.parts.step import AnyStep, as_step, step_size
from mainstem.value import *

__all__ = [
    *base.__all__,
    "AnyStep",
    "Value",
    "any_codec",
    "any_downlink",
    "any_participation",
    "any_sum",
    "any_sync",
    "as_optimizer",
    "as_step",
    "at_least",
    "check",
    "flag",
    "integer",
    "jax",
    "jnp",
    "set_field",
    "leaf",
    "number",
    "one_of",
    "part",
    "parts",
    "positive",
    "preset",
    "random",
    "rates",
    "static",
    "step_size",
    "value",
]
