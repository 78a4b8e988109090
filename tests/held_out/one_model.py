"""Loops in which client and server hold one model: OFedIQ, FedOMD and dynamic FedAvg."""

import numpy as np

from .network import Setting, setting_of, speaks
from .parts import mean_of, mirror_step, rate, sum_of, travel
from .problems import batch_at, gradient, loss


def record_losses(
    instance: dict, setting: Setting, t: int, decides: list[np.ndarray], trace: dict
) -> None:
    """Records what the clients decide with at step t and the mean loss over all of them."""
    problem, data = instance["problem"], instance["data"]
    for k in range(setting.clients):
        trace["models"][t - 1, k] = decides[k]
        if setting.present[t - 1, k]:
            here = loss(problem, decides[k], batch_at(problem, data, t, k))
            trace["loss"][t - 1] += here / setting.clients


def empty_trace(setting: Setting, start: np.ndarray) -> dict:
    """Gives the arrays of a run; the server's row t - 1 is its model before step t."""
    trace = {
        "models": np.zeros((setting.steps, setting.clients, start.size)),
        "server": np.zeros((setting.steps + 1, start.size)),
        "loss": np.zeros(setting.steps),
        "uploads": np.zeros(setting.steps, dtype=int),
    }
    trace["server"][0] = start
    return trace


def send_gradients(instance: dict) -> dict:
    """FedOGD, OFedAvg and OFedIQ: clients decide with the broadcast and send sums of gradients."""
    setting = setting_of(instance)
    problem, data = instance["problem"], instance["data"]
    step = instance["algorithm"]["step"]
    clients, links = range(setting.clients), setting.links
    server = np.array(instance["start"], dtype=float)
    received = [server.copy() for _ in clients]
    local = [server.copy() for _ in clients]
    unsent = [np.zeros_like(server) for _ in clients]
    trace = empty_trace(setting, server)

    for t in range(1, setting.steps + 1):
        record_losses(instance, setting, t, received, trace)
        for k in clients:
            if setting.present[t - 1, k]:
                slope = gradient(problem, local[k], batch_at(problem, data, t, k))
                local[k] = local[k] - rate(step, t) * slope  # OFedIQ (6), (7)
                unsent[k] = unsent[k] + slope
        if setting.sync[t - 1]:
            for k in clients:
                if speaks(setting, t, k):
                    # (8); the factor 1/p_k is the message's weight, outside of Q.
                    links.send(k, t, travel(setting.codec, unsent[k], t, k))
                    trace["uploads"][t - 1] += 1
                unsent[k] = np.zeros_like(server)
            arrived = links.arrivals(t)
            if arrived:
                weights = [setting.weight[m.client] for m in arrived]
                total = sum_of(setting.collect, [m.body for m in arrived], weights)
                server = server - rate(step, t) / setting.scale * total  # (9)
            links.broadcast(t, server)
            for k in clients:
                latest = links.download(k, t)
                if latest is not None:
                    received[k] = latest[1].copy()
                    local[k] = latest[1].copy()
        trace["server"][t] = server
    return trace


def fedomd_learn(
    instance: dict, t: int, k: int, model: np.ndarray, received: np.ndarray
) -> np.ndarray:
    """Gives the model of client k after its mirror step at step t (FedOMD, eq. (3))."""
    algorithm, problem = instance["algorithm"], instance["problem"]
    slope = gradient(problem, model, batch_at(problem, instance["data"], t, k))
    mirror = algorithm.get("mirror", {"map": "euclidean"})
    return mirror_step(mirror, model, slope, rate(algorithm["step"], t))


def fedavg_learn(
    instance: dict, t: int, k: int, model: np.ndarray, received: np.ndarray
) -> np.ndarray:
    """Gives the model of client k after its epochs at step t (dynamic FedAvg, Algorithm 1)."""
    algorithm, problem = instance["algorithm"], instance["problem"]
    batch = batch_at(problem, instance["data"], t, k)
    epochs = int(algorithm["epochs"][k])
    length = rate(algorithm["step"], t) / (epochs if algorithm["normalised"] else 1)
    moving = model
    for _ in range(epochs):
        # (11) takes the gradient at the moving iterate, (7) at the broadcast.
        at = moving if algorithm["incremental"] else received
        moving = moving - length * gradient(problem, at, batch)
    return moving


def send_models(instance: dict) -> dict:
    """FedOMD, FedSEA and dynamic FedAvg: clients decide with their own model and send it."""
    setting = setting_of(instance)
    algorithm = instance["algorithm"]
    learn = fedavg_learn if algorithm["name"] == "dynamic_fedavg" else fedomd_learn
    clients, links = range(setting.clients), setting.links
    server = np.array(instance["start"], dtype=float)
    model = [server.copy() for _ in clients]
    received = [server.copy() for _ in clients]
    trace = empty_trace(setting, server)

    for t in range(1, setting.steps + 1):
        decides = received if algorithm.get("decides", "local") == "broadcast" else model
        record_losses(instance, setting, t, decides, trace)
        for k in clients:
            if setting.present[t - 1, k]:
                model[k] = learn(instance, t, k, model[k], received[k])  # FedOMD (5) between syncs
        if setting.sync[t - 1]:
            for k in clients:
                if speaks(setting, t, k):
                    links.send(k, t, travel(setting.codec, model[k], t, k))
                    trace["uploads"][t - 1] += 1
            arrived = links.arrivals(t)
            if arrived:
                weights = [setting.weight[m.client] for m in arrived]
                # FedOMD (4) and Section VII; dynamic FedAvg (12).
                server = mean_of(setting.collect, [m.body for m in arrived], weights)
            links.broadcast(t, server)
            for k in clients:
                latest = links.download(k, t)
                if latest is not None:
                    received[k] = latest[1].copy()
                    model[k] = latest[1].copy()
        trace["server"][t] = server
    return trace
