"""The status of a run, as JSON: what `mainstem status`, the metrics and the health checks are made of."""

import time
from collections.abc import Mapping
from typing import Any

from mainstem.engines.federate.hub.aggregator import Aggregator
from mainstem.engines.federate.hub.presence import PRESENT, Presence
from mainstem.engines.federate.protocol.comparisons import AloneLosses

LATE = 1.0  # seconds after a round's first upload


def run_status(aggregator: Aggregator, state: str, clients: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of the run; `clients`: what is known of each of them."""
    document = aggregator.document
    broadcast = aggregator.version * document.broadcast_bytes
    return {
        "run": document.rules.run,
        "state": state,
        "time": round(time.time(), 3),
        "pace": document.rules.pace,
        "versions": dict(document.versions),
        "revision": document.revision,
        "epoch": aggregator.epoch,
        "version": aggregator.version,
        "step": aggregator.step,
        "bytes_down": broadcast * len(document.clients),  # as the simulator counts them
        "waiting": {"clients": len(aggregator.uploaded), "quorum": document.quorum},
        "clients": dict(clients),
    }


def client_statuses(
    aggregator: Aggregator,
    presence: Presence,
    first: float | None,
    alone: Mapping[str, AloneLosses],
) -> dict[str, dict[str, Any]]:
    """What is known of each client; `first` is the time at which the first upload of this round came."""
    stopped = aggregator.stopped()
    waits = aggregator.document.lockstep and first is not None
    late = waits and time.monotonic() - (first or 0.0) > LATE
    return {
        name: {
            "samples": int(aggregator.records.received[k]),
            "merged": int(aggregator.records.merged[k]),
            "uploads": int(aggregator.records.watch.uploads[k]),
            "loss": float(aggregator.records.losses[k]),
            "mean_loss": float(aggregator.records.losses[k])
            / max(int(aggregator.records.received[k]), 1),
            "recent_loss": float(
                aggregator.records.watch.recent[k]
            ),  # mean over its last 32 uploads
            "bytes_up": int(aggregator.records.bytes_up[k]),
            "staleness": int(aggregator.records.staleness[k]),
            "norm": float(aggregator.records.norm[k]),
            "clipped": int(stopped[k, 0]),
            "held": int(stopped[k, 1]),
            "refused": dict(aggregator.records.refused[k]),
            "strikes": int(aggregator.records.strikes[k]),
            "state": _state(aggregator, presence, k, late),
            "alone": alone[name]._asdict() | {"gain": alone[name].gain} if name in alone else None,
        }
        for k, name in enumerate(aggregator.document.clients)
    }


def _state(aggregator: Aggregator, presence: Presence, k: int, late: bool) -> str:
    """The state of a client: present, late, lost, away or quarantined."""
    if k in aggregator.records.quarantined:
        return "quarantined"
    state = presence.state(aggregator.document.clients[k])
    missing = state == PRESENT and (k, aggregator.due) not in aggregator.waiting
    return "late" if late and missing else state
