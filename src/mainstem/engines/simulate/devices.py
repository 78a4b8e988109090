"""Device layout: distributes seeds or clients over devices, so that one program runs on one CPU, eight GPUs, or
several machines.

If the number of devices divides neither the seeds nor the clients, the client axis is padded with absent clients:
they draw what no one else draws, are never heard, and are left out of all that is recorded.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from mainstem import check
from mainstem.base import Sampler, Stream, cast
from mainstem.engines.simulate import hosts
from mainstem.value import once

AXIS = "devices"


class Layout(NamedTuple):
    """The placement of the seeds or the clients, whose axis is divided; `mesh` is None on a single device."""

    mesh: Mesh | None
    seeds: bool = False  # the seeds' axis is divided, because it divides evenly

    def padded(self, clients: int) -> int:
        """The length of the client axis, absent clients included."""
        devices = 1 if self.mesh is None or self.seeds else self.mesh.size
        return -(-clients // devices) * devices

    def present(self, tree: Any, clients: int) -> Any:
        """Without the absent clients; the first axis of each array is the clients."""
        if self.padded(clients) == clients:
            return tree
        return jax.tree.map(lambda x: x[:clients], tree)

    def spread(self, array: jax.Array) -> jax.Array:
        """Divides the first axis, the clients, over the devices; for use inside the program."""
        if self.mesh is None or self.seeds:
            return array
        return jax.lax.with_sharding_constraint(
            array, NamedSharding(self.mesh, PartitionSpec(AXIS))
        )

    def whole(self, tree: Any) -> Any:
        """Replicates the tree on every device and host; for use inside the program."""
        if self.mesh is None:
            return tree
        everywhere = NamedSharding(self.mesh, PartitionSpec())
        return jax.tree.map(lambda x: jax.lax.with_sharding_constraint(x, everywhere), tree)

    def put(self, tree: Any, seeds: int | None = None, clients: int | None = None) -> Any:
        """Puts the tree on the devices; the arguments are the axes of the seeds and of the clients."""
        if self.mesh is None:
            return jax.device_put(tree)
        axis = seeds if self.seeds else clients
        names = () if axis is None else (None,) * axis + (AXIS,)
        sharding = NamedSharding(self.mesh, PartitionSpec(*names))

        def one(x: Any) -> jax.Array:
            array = np.asarray(x)
            return placed(array if clients is None else self.lengthened(array, clients), sharding)

        return jax.tree.map(one, tree)

    def lengthened(self, array: np.ndarray, axis: int) -> np.ndarray:
        """With what the last client gets for the absent ones too; `axis` is the clients."""
        absent = self.padded(array.shape[axis]) - array.shape[axis]
        if not absent:
            return array
        return np.pad(array, [(0, absent * (n == axis)) for n in range(array.ndim)], mode="edge")


def placed(array: np.ndarray, sharding: Any) -> jax.Array:
    """The array on the devices of `sharding`; each host places its share."""
    return jax.make_array_from_callback(array.shape, sharding, lambda at: array[at])


def memory() -> int:
    """The bytes of memory of a device; 2**34 if it does not tell."""
    found = jax.local_devices()[0].memory_stats() or {}
    return int(found.get("bytes_limit", 2**34))


def on_devices(stream: Stream, dtype: str, spread: Layout) -> Sampler:
    """The stream's sampler, on the devices. It stays there as long as the stream is in use, for later runs."""
    known: dict[Any, Sampler] = once(stream, "on devices", dict)
    place = dtype, spread
    if place not in known:
        known.clear()
        known[place] = spread.put(cast(stream.device, dtype))
    return known[place]


def layout(devices: int | Sequence[Any] | None, seeds: int) -> Layout:
    """The layout over `devices` (a number of them, or a list) of a run with so many seeds.

    None: the default device alone; on several hosts, all devices of all.
    """
    if hosts.count() > 1:
        if devices is not None:
            wanted = "be left out on several hosts, which use all their devices"
            raise check.refuse("simulate", "devices", wanted, devices)
        devices = jax.devices()
    if devices is None:
        return Layout(None)
    if not isinstance(devices, int | Sequence) or isinstance(devices, str):
        raise check.refuse(
            "simulate", "devices", "be a number of devices or a list of them", devices
        )
    if isinstance(devices, int):
        check.integer("simulate", "devices", devices, least=1, most=jax.device_count())
        devices = jax.devices()[:devices]
    if not len(devices):
        raise check.refuse("simulate", "devices", "name at least one device", devices)
    return Layout(Mesh(np.asarray(devices), (AXIS,)), seeds > 1 and seeds % len(devices) == 0)
