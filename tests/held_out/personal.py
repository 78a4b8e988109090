"""What the loops with a shared and an own model have in common: samples, start and trace."""

from typing import NamedTuple

import numpy as np

from .network import Setting
from .problems import residual


class Seen(NamedTuple):
    """One sample with the pair of models that predicted it."""

    xg: np.ndarray
    xl: np.ndarray
    y: float
    shared: np.ndarray
    own: np.ndarray

    @property
    def partial(self) -> float:
        """The local prediction xl.v that FedRes sends in place of the local features."""
        return float(self.xl @ self.own)


def start_of(instance: dict) -> tuple[np.ndarray, np.ndarray]:
    """Reads the first shared and own model, from a pair or from a dict with these two keys."""
    start = instance["start"]
    shared, own = (start["shared"], start["own"]) if isinstance(start, dict) else start
    return np.array(shared, dtype=float), np.array(own, dtype=float)


def empty_trace(setting: Setting, shared: np.ndarray, own: np.ndarray) -> dict:
    """Gives the arrays of a run; the server's row t - 1 is its model before step t."""
    if setting.codec["name"] != "plain" or setting.collect["name"] != "total":
        raise ValueError("two models: only the plain codec and the total collect are defined")
    trace = {
        "shared": np.zeros((setting.steps, setting.clients, shared.size)),
        "own": np.zeros((setting.steps, setting.clients, own.size)),
        "server": np.zeros((setting.steps + 1, shared.size)),
        "loss": np.zeros(setting.steps),
        "uploads": np.zeros(setting.steps, dtype=int),
    }
    trace["server"][0] = shared
    return trace


def observe(
    instance: dict, setting: Setting, t: int, shared: list, own: list, trace: dict
) -> list[Seen | None]:
    """Records decisions and the mean loss of step t; gives each client's sample, or None."""
    data = instance["data"]
    found: list[Seen | None] = []
    for k in range(setting.clients):
        trace["shared"][t - 1, k] = shared[k]
        trace["own"][t - 1, k] = own[k]
        if not setting.present[t - 1, k]:
            found.append(None)
            continue
        xg, xl, y = (data[name][t - 1, k] for name in ("xg", "xl", "y"))
        seen = Seen(xg, xl, float(y), shared[k].copy(), own[k].copy())
        trace["loss"][t - 1] += residual(seen.shared, seen.partial, xg, y) ** 2 / setting.clients
        found.append(seen)
    return found
