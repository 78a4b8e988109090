"""OFedIQ (Kwon, Park and Hong 2023, Algorithm 2), without delays; FedOGD is L = 1, rates 1."""

import numpy as np


def psi(t, L):
    """(1): the step at which the global model used at step t was new."""
    return ((t - 1) // L) * L + 1


def ofediq(gradient, x1, T, K, eta, rates, L, participants, quantise=None):
    """Equations (6) to (9), letter by letter.

    eta: the learning rate; rates[k]: p_k; L: the period, sync after the steps t with t mod L = 0
    participants(t): list of the clients that send at the sync step t, the paper's S_t
    quantise(vector, k, t): Q_q of (8); None: no quantisation
    """
    w = {1: np.array(x1, dtype=float)}  # w[t], known at t = 1, L + 1, 2 L + 1, ...
    theta = {(k, 1): np.array(x1, dtype=float) for k in range(K)}  # theta_{k,1} = w_1
    g = {}
    server = [w[1]]
    models = []
    for t in range(1, T + 1):
        models.append([w[psi(t, L)] for k in range(K)])  # predict with w_{psi_L(t)}
        for k in range(K):
            if (t - 1) % L == 0:
                g[k, t] = w[t]  # (6)
            else:
                g[k, t] = theta[k, t]  # (6)
            theta[k, t + 1] = g[k, t] - eta * gradient(g[k, t], k, t)  # (7)
        if t % L == 0:
            total = np.zeros_like(w[1])
            for k in participants(t):
                m = -(theta[k, t + 1] - g[k, t - L + 1]) / (eta * rates[k])  # (8)
                if quantise is not None:
                    m = quantise(m, k, t)  # (8)
                total = total + m
            w[t + 1] = w[t - L + 1] - eta / K * total  # (9)
        server.append(w[psi(t + 1, L)])
    return {"models": np.array(models), "server": np.array(server)}
