"""FedSEA (Sahu, Jawanpuria and Sharma 2026, Algorithm 1), without delays."""

import numpy as np


def fedsea(gradient, x1, T, K, project, eta, tau, offset=0):
    """Projected stochastic gradient steps; all clients average once every tau steps.

    gradient(x, k, t): grad f(x, xi_{t,k}), at the drawn sample; project(x): Proj_X; eta(t): step
    offset 0: average after steps tau, 2 tau, ... (the proof's times)
    offset 1: average after steps 1, tau + 1, 2 tau + 1, ... (as Algorithm 1 is printed)
    """
    x = [np.array(x1, dtype=float) for k in range(K)]  # x_{1,m} = x_1
    server = [np.array(x1, dtype=float)]
    models = []
    for t in range(1, T + 1):
        models.append([x[k].copy() for k in range(K)])  # play x_{t,m}
        for k in range(K):
            x[k] = project(x[k] - eta(t) * gradient(x[k], k, t))  # Update: x_{t+1,m}
        if (t - offset) % tau == 0:
            total = np.zeros_like(server[0])
            for k in range(K):
                total = total + x[k]  # send x_{t+1,m}
            server.append(total / K)  # x_{t+1} = (1/M) sum_j x_{t+1,j}
            for k in range(K):
                x[k] = server[-1].copy()  # x_{t+1,m} <- x_{t+1}
        else:
            server.append(server[-1].copy())
    return {"models": np.array(models), "server": np.array(server)}
