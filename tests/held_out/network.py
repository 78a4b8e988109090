"""Delayed links between clients and server, served at sync steps only (design, "Delays")."""

from typing import Any, NamedTuple

import numpy as np


class Message(NamedTuple):
    """One upload: who sent it, at which step, and what it carries."""

    client: int
    sent: int
    body: Any


class Links:
    """Holds uploads and broadcasts under way; the loops call it at sync steps only."""

    def __init__(self, up: np.ndarray, down: np.ndarray) -> None:
        self.up, self.down = up, down
        self.flying: list[Message] = []
        self.broadcasts: list[tuple[int, Any]] = []
        self.newest = [0] * len(down)

    def send(self, client: int, t: int, body: Any) -> None:
        """Puts an upload under way at step t."""
        self.flying.append(Message(client, t, body))

    def arrivals(self, t: int) -> list[Message]:
        """Hands over, once, every message sent at some s with s + up <= t, oldest first."""
        here = [m for m in self.flying if m.sent + self.up[m.client] <= t]
        self.flying = [m for m in self.flying if m.sent + self.up[m.client] > t]
        return here

    def broadcast(self, t: int, body: Any) -> None:
        """Puts a broadcast under way to every client at step t."""
        self.broadcasts.append((t, body))

    def download(self, client: int, t: int) -> tuple[int, Any] | None:
        """Gives the newest broadcast made at u with u + down <= t, unless the client has had it."""
        reached = [b for b in self.broadcasts if b[0] + self.down[client] <= t]
        if not reached or reached[-1][0] <= self.newest[client]:
            return None
        self.newest[client] = reached[-1][0]
        return reached[-1]


class Setting(NamedTuple):
    """The keys of an instance that every loop reads, with their defaults filled in."""

    steps: int
    clients: int
    present: np.ndarray
    sync: np.ndarray
    heard: np.ndarray
    weight: np.ndarray
    scale: float
    codec: dict
    collect: dict
    links: Links


def setting_of(instance: dict) -> Setting:
    """Reads the common keys: by default all are present and heard at every step, with no delay."""
    steps, clients = int(instance["steps"]), int(instance["clients"])
    present = instance["data"].get("present", instance.get("present"))
    everywhere = np.ones((steps, clients), dtype=bool)
    nothing = np.zeros(clients, dtype=int)
    return Setting(
        steps=steps,
        clients=clients,
        present=everywhere if present is None else np.asarray(present),
        sync=np.asarray(instance.get("sync", np.ones(steps, dtype=bool))),
        heard=np.asarray(instance.get("heard", everywhere)),
        weight=np.asarray(instance.get("weight", np.ones(clients)), dtype=float),
        scale=float(instance.get("scale", clients)),
        codec=instance.get("codec", {"name": "plain"}),
        collect=instance.get("collect", {"name": "total"}),
        links=Links(instance.get("up", nothing), instance.get("down", nothing)),
    )


def speaks(setting: Setting, t: int, k: int) -> bool:
    """Tells whether client k sends at sync step t: it is sampled and its message has weight."""
    return bool(setting.heard[t - 1, k]) and setting.weight[k] > 0.0
