"""FedOMD and OFedIQ over a network with extra delays (design, "One step, exactly", "Delays").

a_k = up[k] extra steps up, b_k = down[k] extra steps down. Links are served at sync steps only:
(D1) a message sent at s is merged at the first sync >= s + a_k, and counts exactly once;
(D2) a merge with no arrivals leaves the server unchanged and still broadcasts;
(D3) a broadcast made at u is downloaded at the first sync >= u + b_k, the newest only, each at most
     once: a sync at which no new broadcast has reached the client downloads nothing;
(D4) a download overwrites what the client has.
"""

import numpy as np


def arrivals(in_flight, t):
    """(D1): the messages that have arrived by the sync t, and those still under way."""
    arrived = []
    still = []
    for message in in_flight:
        if message["due"] <= t:
            arrived.append(message)
        else:
            still.append(message)
    return arrived, still


def newest_reached(broadcasts, delay, t, downloaded):
    """(D3): the newest broadcast that has reached a client by sync t, if newer than its last."""
    newest = None
    for broadcast in broadcasts:
        if broadcast["made"] + delay <= t and broadcast["made"] > downloaded:
            newest = broadcast
    return newest


def fedomd_delayed(gradient, x1, T, K, step, eta, sync, participants, up, down):
    """FedOMD (fedomd.py) with delays: the server's model is the mean of the models that arrive."""
    x = [np.array(x1, dtype=float) for k in range(K)]
    server = [np.array(x1, dtype=float)]
    models = []
    in_flight = []  # messages under way to the server
    broadcasts = []  # all ever made, oldest first
    downloaded = [0 for k in range(K)]  # the step at which the client's newest broadcast was made
    for t in range(1, T + 1):
        models.append([x[k].copy() for k in range(K)])
        for k in range(K):
            x[k] = step(x[k], gradient(x[k], k, t), eta(t))  # (3), (5)
        model = server[-1]
        if t in sync:
            for k in participants(t):
                in_flight.append({"due": t + up[k], "body": x[k].copy()})
            arrived, in_flight = arrivals(in_flight, t)  # (D1)
            if len(arrived) > 0:
                total = np.zeros_like(model)
                for message in arrived:
                    total = total + message["body"]
                model = total / len(arrived)  # (4), over the messages that arrived
            broadcasts.append({"made": t, "body": model.copy()})  # (D2)
            for k in range(K):
                broadcast = newest_reached(broadcasts, down[k], t, downloaded[k])  # (D3)
                if broadcast is not None:
                    x[k] = broadcast["body"].copy()  # (D4)
                    downloaded[k] = broadcast["made"]
        server.append(model.copy())
    return {"models": np.array(models), "server": np.array(server)}


def ofediq_delayed(gradient, x1, T, K, eta, rates, sync, participants, up, down):
    """OFedIQ (ofediq.py) with delays: the message is the sum of the gradients since the client's
    previous sync step, sampled or not, over p_k: (8) when there is no delay."""
    w = [np.array(x1, dtype=float) for k in range(K)]  # the client's last download
    theta = [np.array(x1, dtype=float) for k in range(K)]
    unsent = [np.zeros_like(w[0]) for k in range(K)]
    server = [np.array(x1, dtype=float)]
    models = []
    in_flight = []  # messages under way to the server
    broadcasts = []  # all ever made, oldest first
    downloaded = [0 for k in range(K)]  # the step at which the client's newest broadcast was made
    for t in range(1, T + 1):
        models.append([w[k].copy() for k in range(K)])  # predict with the last download
        for k in range(K):
            g = gradient(theta[k], k, t)
            theta[k] = theta[k] - eta * g  # (7)
            unsent[k] = unsent[k] + g
        model = server[-1]
        if t in sync:
            for k in participants(t):
                in_flight.append({"due": t + up[k], "body": unsent[k] / rates[k]})  # (8)
            for k in range(K):
                unsent[k] = np.zeros_like(unsent[k])  # sampled or not
            arrived, in_flight = arrivals(in_flight, t)  # (D1)
            total = np.zeros_like(model)
            for message in arrived:
                total = total + message["body"]
            model = model - eta / K * total  # (9); K is the number of all clients
            broadcasts.append({"made": t, "body": model.copy()})  # (D2)
            for k in range(K):
                broadcast = newest_reached(broadcasts, down[k], t, downloaded[k])  # (D3)
                if broadcast is not None:
                    w[k] = broadcast["body"].copy()  # (D4)
                    theta[k] = broadcast["body"].copy()  # (D4), (6)
                    downloaded[k] = broadcast["made"]
        server.append(model.copy())
    return {"models": np.array(models), "server": np.array(server)}
