"""FedOMD (Mitra, Hassani and Pappas 2021, Algorithm 1), without delays."""

import numpy as np


def mean(vectors):
    """(1/n) sum of n vectors, added in the order in which they come."""
    total = np.zeros_like(vectors[0])
    for vector in vectors:
        total = total + vector
    return total / len(vectors)


def fedomd(gradient, x1, T, K, step, eta, sync, participants):
    """Algorithm 1, with the partial participation of Section VII.

    step(x, g, eta): the client step (3), one of steps.py; eta(t): the step size
    sync: the steps t after which clients and server sync, i.e. t + 1 is in the paper's set I
    participants(t): list of the clients sampled at the sync after step t (all: full participation)
    """
    x = [np.array(x1, dtype=float) for k in range(K)]  # line 1
    server = [np.array(x1, dtype=float)]
    models = []
    for t in range(1, T + 1):  # line 2
        models.append([x[k].copy() for k in range(K)])  # line 4: predict x_{k,t}
        y = []
        for k in range(K):  # line 3
            g = gradient(x[k], k, t)  # line 5
            y.append(step(x[k], g, eta(t)))  # (3)
        if t in sync:  # line 7: t + 1 in I
            sampled = participants(t)
            if len(sampled) > 0:
                server.append(mean([y[k] for k in sampled]))  # (4); Section VII: of those sampled
            else:
                server.append(server[-1].copy())  # a mean of nothing is not zero
            x = [server[-1].copy() for k in range(K)]  # (4): to all m clients
        else:
            server.append(server[-1].copy())
            x = y  # (5)
    return {"models": np.array(models), "server": np.array(server)}
