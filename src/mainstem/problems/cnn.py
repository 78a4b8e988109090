"""The convolutional network of Kwon et al. 2023, Section 5 (Model I)."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from optax import losses

from mainstem import check, random
from mainstem.base import Problem
from mainstem.problems.convolution import convolve_and_pool
from mainstem.problems.mlp import dense
from mainstem.problems.supervised import supervised
from mainstem.random import Key
from mainstem.spec import recorded


@recorded
def cnn(side: int = 28, classes: int = 10) -> Problem:
    """Two 3 x 3 convolutions (32 and 64 channels), each with ReLU and 2 x 2 pooling, and a dense layer.

    Takes images [side, side] in [0, 1].

    >>> cnn().size
    34826
    """
    side = check.integer("cnn", "side", side, least=10)
    classes = check.integer("cnn", "classes", classes, least=2)
    left = ((side - 2) // 2 - 2) // 2

    def init(key: Key) -> Any:
        return {
            "first": _kernel(random.fold(key, 0), 1, 32),
            "second": _kernel(random.fold(key, 1), 32, 64),
            "last": dense(random.fold(key, 2), left * left * 64, classes),
        }

    def apply(params: Any, images: Any) -> Any:
        x = jnp.reshape(images, (-1, side, side, 1))
        for layer in (params["first"], params["second"]):  # pooling first: a quarter of the work
            x = jax.nn.relu(convolve_and_pool(x, layer["weights"]) + layer["bias"])
        return x.reshape(len(x), -1) @ params["last"]["weights"] + params["last"]["bias"]

    return supervised(
        "cnn",
        init,
        apply=lambda params, image: apply(params, image[None])[0],
        penalty=losses.softmax_cross_entropy_with_integer_labels,
        shape=(side, side),
        classes=classes,
        apply_many=apply,
        block=10,
    )


def _kernel(key: Key, channels: int, outputs: int) -> dict[str, Any]:
    weights = random.normal(key, (3, 3, channels, outputs)) * math.sqrt(2 / (9 * channels))
    return {"weights": weights, "bias": jnp.zeros(outputs)}
