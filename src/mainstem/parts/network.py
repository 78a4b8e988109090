"""Network: how many extra steps a message takes on each client's links."""

from typing import Any, NamedTuple

import numpy as np

from mainstem import check
from mainstem.spec import UNRECORDED, Spec, recorded


class Network(NamedTuple):
    """Extra steps on each client's links."""

    up: np.ndarray
    down: np.ndarray
    spec: Spec = UNRECORDED

    @property
    def instant(self) -> bool:
        """Whether nothing is delayed."""
        return not self.up.any() and not self.down.any()


@recorded
def network(up: Any = 0, down: Any = 0) -> Network:
    """Delays in steps, uplink and downlink: one for all clients, or one for each.

    >>> network(up=3, down=[0, 1, 2]).instant
    False
    """
    return Network(_delays("up", up), _delays("down", down))


def _delays(name: str, value: Any) -> np.ndarray:
    try:
        array = np.asarray(value)
    except ValueError:  # rows of unequal length
        array = np.asarray(np.nan)
    if array.ndim > 1 or not np.issubdtype(array.dtype, np.integer) or (array < 0).any():
        raise check.refuse("network", name, "be whole numbers of at least 0", value)
    return array.astype(np.int32)


def fitted(wires: Network, clients: int, steps: int) -> Network:
    """The network with a delay for each client; refused if it does not fit the run."""
    for name in ("up", "down"):
        delays = getattr(wires, name)
        if delays.ndim and delays.size != clients:
            raise check.refuse(
                "network", name, f"have one entry for each of {clients} clients", delays
            )
        if delays.max(initial=0) >= steps:
            raise check.refuse("network", name, f"be shorter than the run of {steps} steps", delays)
    return wires._replace(
        up=np.broadcast_to(wires.up, clients), down=np.broadcast_to(wires.down, clients)
    )
