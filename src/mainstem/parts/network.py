"""Network: the delay, in steps, of messages on each client's uplink and downlink."""

from typing import Any

import numpy as np

from mainstem import check
from mainstem.value import Value, leaf, value


def _delays(owner: str, name: str, given: Any) -> Any:
    try:
        array = np.asarray(given)
    except ValueError:  # rows of unequal length
        array = np.asarray(np.nan)
    if array.ndim > 1 or not np.issubdtype(array.dtype, np.integer) or (array < 0).any():
        raise check.refuse(owner, name, "be whole numbers of at least 0", given)
    return array.astype(np.int32) if array.ndim else int(array)


@value
class network(Value):
    """Delays in steps, uplink and downlink: one for all clients, or one for each.

    >>> network(up=3, down=[0, 1, 2]).instant
    False
    """

    up: Any = leaf(default=0, checked=_delays)
    down: Any = leaf(default=0, checked=_delays)

    @property
    def instant(self) -> bool:
        """Whether there are no delays."""
        return not np.any(self.up) and not np.any(self.down)

    @property
    def level(self) -> bool:
        """Whether every client gets a broadcast at the same time as the others."""
        return bool(np.all(np.asarray(self.down) == np.ravel(self.down)[0]))

    def fitted(self, clients: int, steps: int) -> "network":
        """The network with one delay for each client. Raises `BadParameter` if it does not fit the run."""
        for name in ("up", "down"):
            delays = getattr(self, name)
            if np.ndim(delays) and np.size(delays) != clients:
                wanted = f"have one entry for each of {clients} clients"
                raise check.refuse("network", name, wanted, delays)
            if np.max(delays) >= steps:
                wanted = f"be shorter than the run of {steps} steps"
                raise check.refuse("network", name, wanted, delays)
        up, down = (
            np.broadcast_to(each, clients).astype(np.int32) for each in (self.up, self.down)
        )
        return network(up, down)
