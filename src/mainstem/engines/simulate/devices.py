"""Device layout: distributes the clients over devices, so that one program runs on one CPU, one GPU or eight."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from mainstem import check
from mainstem.base import Sampler, Stream, cast
from mainstem.value import once


class Layout(NamedTuple):
    """The placement of the client axis; `mesh` is None on a single device."""

    mesh: Mesh | None

    def spread(self, array: jax.Array) -> jax.Array:
        """Shards the first axis over the devices; for use inside the program."""
        if self.mesh is None:
            return array
        return jax.lax.with_sharding_constraint(
            array, NamedSharding(self.mesh, PartitionSpec("clients"))
        )

    def whole(self, tree: Any) -> Any:
        """Replicates the tree on every host; for use inside the program."""
        if self.mesh is None:
            return tree
        everywhere = NamedSharding(self.mesh, PartitionSpec())
        return jax.tree.map(lambda x: jax.lax.with_sharding_constraint(x, everywhere), tree)

    def put(self, tree: Any, axis: int | None) -> Any:
        """Puts the tree on the devices: sharded along `axis`, or a copy on each."""
        if self.mesh is None:
            return jax.device_put(tree)
        names = () if axis is None else (None,) * axis + ("clients",)
        sharding = NamedSharding(self.mesh, PartitionSpec(*names))
        return jax.tree.map(
            lambda x: jax.make_array_from_callback(
                np.shape(x), sharding, lambda at: np.asarray(x)[at]
            ),
            tree,
        )


def memory() -> int:
    """The bytes of memory of a device; 2**34 if it does not tell."""
    found = jax.devices()[0].memory_stats() or {}
    return int(found.get("bytes_limit", 2**34))


def on_devices(stream: Stream, dtype: str, spread: Layout) -> Sampler:
    """The stream's sampler, on the devices. It stays there as long as the stream is in use, for later runs."""
    known: dict[Any, Sampler] = once(stream, "on devices", dict)
    place = dtype, spread
    if place not in known:
        known.clear()
        known[place] = spread.put(cast(stream.device, dtype), None)
    return known[place]


def layout(devices: int | Sequence[Any] | None, clients: int) -> Layout:
    """The layout over `devices` (a number of them, or a list); None: the default device alone."""
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
    if clients % len(devices):
        wanted = f"divide the {clients} clients evenly"
        raise check.refuse("simulate", "devices", wanted, len(devices))
    return Layout(Mesh(np.asarray(devices), ("clients",)))
