"""A convolution whose gradients are matrix products.

The forward pass is XLA's own. Its gradients are slow on the CPU, and for a kernel of its own per
client they are grouped convolutions on every device; as patches and a matrix product they are
neither.
"""

from typing import Any

import jax
import jax.numpy as jnp


@jax.custom_vjp
def convolve(image: Any, kernel: Any) -> Any:
    """`image` [h, w, c] with `kernel` [3, 3, c, o], without padding: [h - 2, w - 2, o]."""
    dimensions = ("NHWC", "HWIO", "NHWC")
    out = jax.lax.conv_general_dilated(
        image[None], kernel, (1, 1), "VALID", dimension_numbers=dimensions
    )
    return out[0]


def _forward(image: Any, kernel: Any) -> Any:
    return convolve(image, kernel), (image, kernel)


def _backward(kept: Any, slope: Any) -> Any:
    image, kernel = kept
    rows, columns, outputs = slope.shape
    size, channels = kernel.shape[0], kernel.shape[2]
    windows = [(i, j) for i in range(size) for j in range(size)]
    patches = jnp.concatenate([image[i : i + rows, j : j + columns] for i, j in windows], axis=2)
    flat = slope.reshape(rows * columns, outputs)
    to_kernel = patches.reshape(rows * columns, -1).T @ flat
    back = (flat @ kernel.reshape(-1, outputs).T).reshape(rows, columns, size * size, channels)
    to_image = sum(
        jnp.pad(back[:, :, n], ((i, size - 1 - i), (j, size - 1 - j), (0, 0)))
        for n, (i, j) in enumerate(windows)
    )
    return to_image, to_kernel.reshape(kernel.shape)


convolve.defvjp(_forward, _backward)


def pool(image: Any) -> Any:
    """The largest of each 2 x 2 window; an odd last row or column is left out."""
    rows, columns = image.shape[0] // 2 * 2, image.shape[1] // 2 * 2
    even = image[:rows, :columns]
    tall = jnp.maximum(even[0::2], even[1::2])
    return jnp.maximum(tall[:, 0::2], tall[:, 1::2])
