"""Collective regret and what goes with it (Mitra et al. 2021; V_t from Sahu et al. 2026).

models [T, K, D] as the runs return them; loss(x, k, t): client k's own loss of step t at x.
"""

import numpy as np


def global_loss(x, t, K, loss):
    """(1): l_t(x) = (1/m) sum_i l_{i,t}(x)."""
    total = 0.0
    for i in range(K):
        total = total + loss(x, i, t)
    return total / K


def collective_loss(models, loss):
    """[T]: (1/m) sum_i l_t(x_{i,t}), the inner sum of (2): every model on the global loss."""
    T, K, _ = models.shape
    out = np.zeros(T)
    for t in range(1, T + 1):
        total = 0.0
        for i in range(K):
            total = total + global_loss(models[t - 1, i], t, K, loss)  # m losses each: m^2 a step
        out[t - 1] = total / K
    return out


def collective_regret(models, loss, best):
    """[T]: (2) for every horizon n = 1..T; best(n) = min_u sum_{t <= n} l_t(u)."""
    per_step = collective_loss(models, loss)
    out = np.zeros(len(per_step))
    total = 0.0
    for n in range(1, len(per_step) + 1):
        total = total + per_step[n - 1]
        out[n - 1] = total - best(n)  # (2)
    return out


def consensus_error(models):
    """[T]: V_t = (1/M) sum_m |x_{t,m} - x_t|^2, x_t the mean over the clients (FedSEA, (13))."""
    T, K, D = models.shape
    out = np.zeros(T)
    for t in range(1, T + 1):
        centre = np.zeros(D)
        for k in range(K):
            centre = centre + models[t - 1, k] / K
        for k in range(K):
            out[t - 1] = out[t - 1] + np.sum((models[t - 1, k] - centre) ** 2) / K
    return out


def average_predictor(models):
    """[D]: (14), (1/(m T)) sum_t sum_i x_{i,t}."""
    T, K, D = models.shape
    total = np.zeros(D)
    for t in range(1, T + 1):
        for i in range(K):
            total = total + models[t - 1, i]
    return total / (K * T)
