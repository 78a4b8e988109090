"""CNN: the convolutional network of Kwon et al. 2023, Section 5 (Model I)."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from optax import losses

from mainstem import random
from mainstem.problems.convolution import convolve_and_pool
from mainstem.problems.mlp import dense
from mainstem.problems.precision import lowered, precision_field, restored
from mainstem.problems.supervised import Supervised
from mainstem.random import Key
from mainstem.value import integer, value


@value
class cnn(Supervised):
    """A convolutional network: two 3 x 3 convolutions, each with ReLU and 2 x 2 pooling, and a dense layer.

    The convolutions have 32 and 64 channels. Takes images [side, side] in [0, 1]; the loss is the
    cross-entropy of the softmax of the scores. With `precision="bfloat16"` the layers are computed with 16 bits,
    which is faster on a GPU; parameters, losses and sums over clients stay in the run's dtype.

    >>> cnn().parameters
    34826
    """

    side: int = integer(default=28, least=10)
    classes: int = integer(default=10, least=2)
    precision: str = precision_field()

    block = 10

    @property
    def shape(self) -> tuple[int, int]:
        return (self.side, self.side)

    def init(self, key: Key) -> Any:
        left = ((self.side - 2) // 2 - 2) // 2
        return {
            "first": _kernel(random.fold(key, 0), 1, 32),
            "second": _kernel(random.fold(key, 1), 32, 64),
            "last": dense(random.fold(key, 2), left * left * 64, self.classes),
        }

    def apply(self, params: Any, x: Any) -> Any:
        return self.apply_many(params, x[None])[0]

    def apply_many(self, params: Any, images: Any) -> Any:
        """The scores of many images."""
        params, images = lowered(self.precision, (params, images))
        x = jnp.reshape(images, (-1, self.side, self.side, 1))
        for layer in (params["first"], params["second"]):  # pooling first: a quarter of the work
            x = jax.nn.relu(convolve_and_pool(x, layer["weights"]) + layer["bias"])
        scores = x.reshape(len(x), -1) @ params["last"]["weights"] + params["last"]["bias"]
        return restored(self.precision, scores)

    def penalty(self, scores: Any, target: Any) -> Any:
        return losses.softmax_cross_entropy_with_integer_labels(scores, target)


def _kernel(key: Key, channels: int, outputs: int) -> dict[str, Any]:
    weights = random.normal(key, (3, 3, channels, outputs)) * math.sqrt(2 / (9 * channels))
    return {"weights": weights, "bias": jnp.zeros(outputs)}
