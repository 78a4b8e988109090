"""FedRes.ERM and fictitious play: each side solves a least-squares problem against the other."""

import numpy as np

from .network import setting_of, speaks
from .personal import Seen, empty_trace, observe, start_of


def nearest_minimiser(
    rows: list[np.ndarray], targets: list[float], weights: list[float], near: np.ndarray
) -> np.ndarray:
    """Gives the least-squares solution that is nearest to `near`; without rows, `near` itself."""
    if not rows:
        return near
    roots = np.sqrt(np.array(weights))
    matrix = roots[:, None] * np.stack(rows)
    missing = roots * np.array(targets) - matrix @ near
    # The smallest step that solves is the minimum-norm solution for what is missing.
    return near + np.linalg.lstsq(matrix, missing, rcond=1e-10)[0]


def solve_own(memory: list[Seen], shared: np.ndarray, own: np.ndarray, erm: bool) -> np.ndarray:
    """Solves (2) with the newest shared model, or (5), where old samples keep their partner."""
    targets = [s.y - float(s.xg @ (shared if erm else s.shared)) for s in memory]
    return nearest_minimiser([s.xl for s in memory], targets, [1.0] * len(memory), own)


def solve_shared(
    memory: list[list[Seen]], newest_own: list, weight: np.ndarray, server: np.ndarray, erm: bool
) -> np.ndarray:
    """Solves (3) with the newest own models that arrived, or (6), with those that predicted."""
    rows, targets, weights = [], [], []
    for k, samples in enumerate(memory):
        for s in samples:
            rows.append(s.xg)
            targets.append(s.y - float(s.xl @ (newest_own[k] if erm else s.own)))
            weights.append(float(weight[k]))
    return nearest_minimiser(rows, targets, weights, server)


def best_response(instance: dict) -> dict:
    """FedRes.ERM (Algorithms 1 and 2) and fictitious play (eqs (5) and (6)), squared loss."""
    setting = setting_of(instance)
    algorithm = instance["algorithm"]
    if algorithm.get("radius") is not None:
        raise ValueError("fedres_erm, fictitious_play: only radius None is solved here")
    erm = algorithm["name"] == "fedres_erm"
    clients, links = range(setting.clients), setting.links
    server, first_own = start_of(instance)
    shared = [server.copy() for _ in clients]
    own = [first_own.copy() for _ in clients]
    unsent: list[list[Seen]] = [[] for _ in clients]
    at_client: list[list[Seen]] = [[] for _ in clients]
    at_server: list[list[Seen]] = [[] for _ in clients]
    newest_own = [first_own.copy() for _ in clients]
    trace = empty_trace(setting, server, first_own)

    for t in range(1, setting.steps + 1):
        for k, seen in enumerate(observe(instance, setting, t, shared, own, trace)):
            if seen is not None:
                unsent[k].append(seen)
                at_client[k].append(seen)
        if setting.sync[t - 1]:
            for k in clients:
                if unsent[k] and speaks(setting, t, k):
                    links.send(k, t, (unsent[k], own[k].copy()))
                    trace["uploads"][t - 1] += 1
                unsent[k] = []
            arrived = links.arrivals(t)
            for m in arrived:
                at_server[m.client].extend(m.body[0])
                newest_own[m.client] = m.body[1]
            if arrived:
                server = solve_shared(at_server, newest_own, setting.weight, server, erm)
            links.broadcast(t, server)
            for k in clients:
                latest = links.download(k, t)
                if latest is not None:
                    shared[k] = latest[1].copy()
                if latest is not None or algorithm.get("solves", "downloads") == "syncs":
                    own[k] = solve_own(at_client[k], shared[k], own[k], erm)
        trace["server"][t] = server
    return trace
