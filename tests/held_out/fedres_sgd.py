"""FedRes.SGD: both models follow gradients taken at the pair that predicted."""

import numpy as np

from .network import Message, setting_of, speaks
from .parts import on_ball, rate
from .personal import Seen, empty_trace, observe, start_of
from .problems import own_gradient, shared_gradient


def server_gradient(message: Message, variant: str, server: np.ndarray, period: int) -> np.ndarray:
    """Gives the shared part of one message's mean gradient (eqs (8), (10) and Section 3.2.1)."""
    total = np.zeros_like(server)
    for seen in message.body:
        # "on_arrival" pairs the late local prediction with the model that the server has now.
        at = server if variant == "on_arrival" else seen.shared
        total = total + shared_gradient(at, seen.partial, seen.xg, seen.y)
    return total / period


def client_gradient(batch: list[Seen], period: int) -> np.ndarray:
    """Gives the own part of a batch's mean gradient, at the pairs that predicted (eqs (7), (10))."""
    return sum(own_gradient(s.shared, s.own, s.xg, s.xl, s.y) for s in batch) / period


def fedres_sgd(instance: dict) -> dict:
    """FedRes.SGD: Algorithms 3 and 4 ("aligned") and the two baselines of Section 3.2.1."""
    setting = setting_of(instance)
    algorithm = instance["algorithm"]
    step, own_step = algorithm["step"], algorithm.get("own_step", algorithm["step"])
    radius, period = algorithm.get("radius"), algorithm.get("period", 1)
    variant = algorithm.get("variant", "aligned")
    if variant not in ("aligned", "on_arrival", "undelayed"):
        raise ValueError(f"fedres_sgd: unknown variant {variant!r}")
    clients, links = range(setting.clients), setting.links
    server, first_own = start_of(instance)
    shared = [server.copy() for _ in clients]
    own = [first_own.copy() for _ in clients]
    batch: list[list[Seen]] = [[] for _ in clients]
    returning: list[list[tuple[int, np.ndarray]]] = [[] for _ in clients]
    trace = empty_trace(setting, server, first_own)

    for t in range(1, setting.steps + 1):
        for k, seen in enumerate(observe(instance, setting, t, shared, own, trace)):
            if seen is not None:
                batch[k].append(seen)
        if setting.sync[t - 1]:
            for k in clients:
                if batch[k] and speaks(setting, t, k):
                    links.send(k, t, batch[k])
                    trace["uploads"][t - 1] += 1
                if batch[k] and variant != "aligned":
                    moved = own[k] - rate(own_step, t) * client_gradient(batch[k], period)
                    own[k] = on_ball(moved, radius)
                batch[k] = []
            arrived = links.arrivals(t)
            if arrived:
                total = sum(
                    setting.weight[m.client] * server_gradient(m, variant, server, period)
                    for m in arrived
                )
                server = on_ball(server - rate(step, t) * total, radius)  # (8)
            for m in arrived:
                returning[m.client].append((t, client_gradient(m.body, period)))
            links.broadcast(t, server)
            for k in clients:
                latest = links.download(k, t)
                if latest is None:
                    continue
                shared[k] = latest[1].copy()
                # (7): the own part is taken once a broadcast contains the shared part.
                back = [pair for pair in returning[k] if pair[0] <= latest[0]]
                returning[k] = [pair for pair in returning[k] if pair[0] > latest[0]]
                if variant == "aligned" and back:
                    moved = own[k] - sum(rate(own_step, merged) * slope for merged, slope in back)
                    own[k] = on_ball(moved, radius)
        trace["server"][t] = server
    return trace
