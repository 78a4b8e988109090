"""The status of each client, as the hub publishes it."""

import time
from typing import Any

from mainstem.engines.federate.hub.aggregator import Aggregator
from mainstem.engines.federate.hub.presence import PRESENT, Presence

LATE = 1.0  # seconds after a round's first upload


def client_statuses(
    aggregator: Aggregator, presence: Presence, first: float | None
) -> dict[str, dict[str, Any]]:
    """What is known of each client; `first` is the time at which the first upload of this round came."""
    stopped = aggregator.stopped()
    waits = aggregator.document.lockstep and first is not None
    late = waits and time.monotonic() - (first or 0.0) > LATE
    return {
        name: {
            "samples": int(aggregator.received[k]),
            "merged": int(aggregator.merged[k]),
            "loss": float(aggregator.losses[k]),
            "mean_loss": float(aggregator.losses[k]) / max(int(aggregator.received[k]), 1),
            "bytes_up": int(aggregator.bytes_up[k]),
            "staleness": int(aggregator.staleness[k]),
            "clipped": int(stopped[k, 0]),
            "held": int(stopped[k, 1]),
            "refused": dict(aggregator.refused[k]),
            "state": _state(aggregator, presence, k, late),
        }
        for k, name in enumerate(aggregator.document.clients)
    }


def _state(aggregator: Aggregator, presence: Presence, k: int, late: bool) -> str:
    """The state of a client: present, late, lost, away or quarantined."""
    if aggregator.quarantined(k):
        return "quarantined"
    state = presence.state(aggregator.document.clients[k])
    missing = state == PRESENT and (k, aggregator.due) not in aggregator.waiting
    return "late" if late and missing else state
