"""Dynamic FedAvg (Rizk, Vlaski and Sayed 2020, Algorithm 1), without delays."""

import numpy as np


def dynamic_fedavg(
    gradient, w0, *, T, participants, epochs, batches, step, incremental=True, normalised=True
):
    """Algorithm 1: (11)-(12); incremental False: (7), every gradient at the start.

    gradient(w, t, k, index): the gradient of Q_k at w for the sample `index` of agent k at step t
    participants[t - 1]: the agents of step t, the paper's L_i; no agent leaves w where it is
    epochs[k]: E_k; batches(t, k, e): the indices of B_{k,e}, e = 0..E_k - 1; step: mu
    normalised False: the 1/E_k is left out
    """
    w = np.array(w0, dtype=float)
    server = [w.copy()]
    for t in range(1, T + 1):
        total = np.zeros_like(w)
        for k in participants[t - 1]:
            local = w.copy()  # w_{k,-1} = w_{i-1}
            mu = step / epochs[k] if normalised else step
            for e in range(epochs[k]):
                index = batches(t, k, e)
                at = local if incremental else w  # (11), (7)
                g = np.zeros_like(w)
                for b in index:
                    g = g + gradient(at, t, k, b)
                local = local - mu * g / len(index)
            total = total + local
        if len(participants[t - 1]) > 0:
            w = total / len(participants[t - 1])  # (12)
        server.append(w.copy())
    return {"server": np.array(server)}
