"""The machine that a benchmark runs on: its hardware, the versions of the packages, and its peak rates."""

import functools
import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any, NamedTuple

PACKAGES = (
    "mainstem", "jax", "jaxlib", "numpy", "optax", "torch", "pfl", "river", "vowpalwabbit",
)  # fmt: skip


class Peaks(NamedTuple):
    """A device's highest rates: operations per second by precision, and bytes per second."""

    flops: dict[str, float]
    bandwidth: float


# By JAX's `device_kind`; the vendor's figures, dense.
PEAKS = {
    "NVIDIA H200": Peaks({"float32": 67e12, "tf32": 494e12, "bfloat16": 989e12}, 4.8e12),
}


@functools.cache
def kind() -> str:
    """The kind of JAX's default device."""
    import jax

    return str(jax.devices()[0].device_kind)


def on_gpu() -> bool:
    """Whether JAX's default device is a GPU."""
    import jax

    return jax.devices()[0].platform == "gpu"


def torch_device() -> str:
    """PyTorch's name of the device to measure on."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def described() -> dict[str, Any]:
    """Hardware and versions."""
    import jax

    return {
        "device": kind(),
        "devices": jax.device_count(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "python": platform.python_version(),
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """The versions of the packages that are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def missing() -> list[str]:
    """The packages that are not installed."""
    return [name for name in PACKAGES if name not in versions()]


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
