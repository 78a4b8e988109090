"""Convolution as patches and a matrix product, forward and backward.

On the CPU both directions are faster than those of XLA if the patches fit in the cache. On every device a
separate kernel for each client (the gradient of a client) would otherwise be a grouped convolution, which
is slow. On accelerators everything else is that of XLA.
"""

from typing import Any

import jax
import jax.numpy as jnp

FEW = 8  # channels for which accelerators have no fast convolution, and no fast gradient in the kernel


@jax.custom_vjp
def convolve(images: Any, kernel: Any) -> Any:
    """Convolves `images` [n, h, w, c] with `kernel` [3, 3, c, o], without padding: [n, h - 2, w - 2, o]."""
    if images.shape[3] < FEW:
        return _product(images, kernel)
    return jax.lax.platform_dependent(images, kernel, cpu=_product, default=_native)


def _native(images: Any, kernel: Any) -> Any:
    names = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(images, kernel, (1, 1), "VALID", dimension_numbers=names)


def _product(images: Any, kernel: Any) -> Any:
    count, rows, columns, _ = images.shape
    size, outputs = kernel.shape[0], kernel.shape[3]
    out = _patches(images, size) @ kernel.reshape(-1, outputs)
    return out.reshape(count, rows - size + 1, columns - size + 1, outputs)


def _patches(images: Any, size: int) -> Any:
    """Every window of every image as a row. Off the CPU joined in two turns, of few and long pieces."""
    _, rows, columns, channels = images.shape
    rows, columns = rows - size + 1, columns - size + 1
    if jax.default_backend() == "cpu":
        cut = [images[:, i : i + rows, j : j + columns] for i in range(size) for j in range(size)]
    else:
        wide = jnp.concatenate([images[:, :, j : j + columns] for j in range(size)], axis=3)
        cut = [wide[:, i : i + rows] for i in range(size)]
    return jnp.concatenate(cut, axis=3).reshape(-1, size * size * channels)


def _forward(images: Any, kernel: Any) -> Any:
    return convolve(images, kernel), (images, kernel)


def _backward(kept: Any, slope: Any) -> Any:
    images, kernel = kept
    to_images = jax.lax.platform_dependent(kernel, slope, cpu=_to_images, default=_native_to_images)
    return to_images, _to_kernel(images, slope)


def _to_images(kernel: Any, slope: Any) -> Any:
    """The gradient in the images, as a matrix product."""
    count, rows, columns, outputs = slope.shape
    size, channels = kernel.shape[0], kernel.shape[2]
    back = slope.reshape(-1, outputs) @ kernel.reshape(-1, outputs).T
    back = back.reshape(count, rows, columns, size, size, channels)
    return sum(
        jnp.pad(back[:, :, :, i, j], ((0, 0), (i, size - 1 - i), (j, size - 1 - j), (0, 0)))
        for i in range(size)
        for j in range(size)
    )


def _native_to_images(kernel: Any, slope: Any) -> Any:
    count, rows, columns, _ = slope.shape
    rim, channels = kernel.shape[0] - 1, kernel.shape[2]
    images = jax.ShapeDtypeStruct((count, rows + rim, columns + rim, channels), slope.dtype)
    return jax.linear_transpose(lambda x: _native(x, kernel), images)(slope)[0]


@jax.custom_batching.custom_vmap
def _to_kernel(images: Any, slope: Any) -> Any:
    """The gradient in one kernel for all images."""
    if images.shape[3] < FEW:
        return _product_to_kernel(images, slope)
    return jax.lax.platform_dependent(
        images, slope, cpu=_product_to_kernel, default=_native_to_kernel
    )


@_to_kernel.def_vmap
def _to_kernels(_: int, batched: Any, images: Any, slope: Any) -> Any:
    """The gradient in a kernel for each client."""
    axes = [0 if it else None for it in batched]
    return jax.vmap(_product_to_kernel, in_axes=axes)(images, slope), True


def _product_to_kernel(images: Any, slope: Any) -> Any:
    rows = _patches(images, images.shape[1] - slope.shape[1] + 1)
    return (rows.T @ slope.reshape(-1, slope.shape[3])).reshape(_kernel_shape(images, slope))


def _native_to_kernel(images: Any, slope: Any) -> Any:
    kernel = jax.ShapeDtypeStruct(_kernel_shape(images, slope), images.dtype)
    return jax.linear_transpose(lambda k: _native(images, k), kernel)(slope)[0]


def _kernel_shape(images: Any, slope: Any) -> tuple[int, int, int, int]:
    size = images.shape[1] - slope.shape[1] + 1
    return size, size, images.shape[3], slope.shape[3]


convolve.defvjp(_forward, _backward)


def convolve_and_pool(images: Any, kernel: Any) -> Any:
    """The convolution, then the maximum of each 2 x 2 window of it.

    An odd last row or column of the convolution fills no window, so it is not computed.
    """
    rim = kernel.shape[0] - 1
    rows, columns = ((side - rim) // 2 * 2 + rim for side in images.shape[1:3])
    return _pooled(convolve(images[:, :rows, :columns], kernel))


def _pooled(even: Any) -> Any:
    """The maximum of each 2 x 2 window. Equal maxima share the gradient, in a way that depends on the device."""
    if jax.default_backend() == "cpu":
        tall = jnp.maximum(*_halves(even, axis=1))
        return jnp.maximum(*_halves(tall, axis=2))
    count, rows, columns, channels = even.shape
    windows = even.reshape(count, rows // 2, 2, columns // 2, 2, channels)
    return windows.max(axis=(2, 4))  # its gradient has no strides


def _halves(given: Any, axis: int) -> tuple[Any, Any]:
    """The entries at even and at odd places; as slices, because the oldest JAX would gather them."""
    even, odd = (jax.lax.slice_in_dim(given, start, None, 2, axis) for start in (0, 1))
    return even, odd
