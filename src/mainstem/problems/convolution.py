"""A convolution whose gradients are matrix products.

The forward pass is XLA's own. Its gradients are slow on the CPU, and with a kernel of its own for
each client they are grouped convolutions on every device; as patches and a matrix product they are
neither.
"""

from typing import Any

import jax
import jax.numpy as jnp


@jax.custom_vjp
def convolve(images: Any, kernel: Any) -> Any:
    """`images` [n, h, w, c] with `kernel` [3, 3, c, o], without padding: [n, h - 2, w - 2, o]."""
    dimensions = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(
        images, kernel, (1, 1), "VALID", dimension_numbers=dimensions
    )


def _forward(images: Any, kernel: Any) -> Any:
    return convolve(images, kernel), (images, kernel)


def _backward(kept: Any, slope: Any) -> Any:
    images, kernel = kept
    count, rows, columns, outputs = slope.shape
    size, channels = kernel.shape[0], kernel.shape[2]
    windows = [(i, j) for i in range(size) for j in range(size)]
    cut = [images[:, i : i + rows, j : j + columns] for i, j in windows]
    patches = jnp.concatenate(cut, axis=3).reshape(-1, size * size * channels)
    flat = slope.reshape(-1, outputs)
    to_kernel = (patches.T @ flat).reshape(kernel.shape)
    back = flat @ kernel.reshape(-1, outputs).T
    back = back.reshape(count, rows, columns, size * size, channels)
    to_images = sum(
        jnp.pad(back[:, :, :, n], ((0, 0), (i, size - 1 - i), (j, size - 1 - j), (0, 0)))
        for n, (i, j) in enumerate(windows)
    )
    return to_images, to_kernel


convolve.defvjp(_forward, _backward)


def pool(images: Any) -> Any:
    """The largest of each 2 x 2 window; an odd last row or column is left out."""
    rows, columns = images.shape[1] // 2 * 2, images.shape[2] // 2 * 2
    even = images[:, :rows, :columns]
    tall = jnp.maximum(even[:, 0::2], even[:, 1::2])
    return jnp.maximum(tall[:, :, 0::2], tall[:, :, 1::2])
