"""FedRes (Agarwal, Langford and Wei 2020): Algorithms 1-4, eqs (5)-(6), 3.2.1, 4 and 5.1.

The loss of a sample is l(w, v) = (y - xg.w - xl.v)^2 (Example 1, no 1/2), w the global and v the
local model. Arrays: xg [T, P, d], xl [T, P, dl], y [T, P]. Steps are 1-based: sample t is xg[t - 1].
Delays up[k], down[k] are extra steps on top of the one-step minimum (network.py, (D1)-(D4)), so for
Algorithms 3-4 alpha = up + 1 and beta = down; for (3), (6) and 3.2.1, which have w_{t+1} on the
left, alpha = up.

Every run returns a dict:
    shared [T, P, d]   shared[t - 1, k]: the global model client k predicts with at step t
    own    [T, P, dl]  own[t - 1, k]: the local model client k predicts with at step t
    server [T + 1, d]  server[t]: the server's model after step t; server[0] is the start
"""

import numpy as np

from .network import arrivals, newest_reached


def project(z, radius):
    """Pi_D: the point of the ball |z| <= radius nearest to z; None: no ball."""
    if radius is None:
        return z
    norm = np.sqrt(np.sum(z**2))
    if norm <= radius:
        return z
    return z * (radius / norm)


def descend(z, g, step, squares, adagrad, radius):
    """One projected step, with AdaGrad's per-coordinate step sizes where adagrad is given."""
    if adagrad is None:
        return project(z - step * g, radius), squares
    squares = squares + g**2
    return project(z - adagrad / np.sqrt(squares + 1e-8) * g, radius), squares


def rate(step, t):
    """A step size, or that of step t."""
    return step(t) if callable(step) else step


def begin(w0, v0, P, d, dl):
    """The start: zeros unless given; v0 is one local model for all clients, or one each."""
    w = np.zeros(d) if w0 is None else np.array(w0, dtype=float)
    v = np.zeros((P, dl)) if v0 is None else np.broadcast_to(np.array(v0, dtype=float), (P, dl))
    return w.copy(), [v[k].copy() for k in range(P)]


def fedres_sgd(
    xg,
    xl,
    y,
    *,
    step,
    own_step,
    up,
    down,
    period=1,
    radius=None,
    variant="aligned",
    present=None,
    adagrad=None,
    w0=None,
    v0=None,
):
    """Algorithms 3 and 4; 3.2.1 by variant; mini-batches (Section 4) by period.

    variant "aligned": Algorithms 3-4; "undelayed": 3.2.1's second display (aligned gradients, the
    client steps at once); "on_arrival": 3.2.1's first (the server's current model, the late
    local prediction; the client steps at once)
    period: a message is sent after steps period, 2 period, ...; its loss is (10), the mean over
    period samples
    present [T, P]: where False the loss is identically 0 (Section 2): no gradient, but counted
    in the mean; a period without any sample sends nothing
    step and own_step: numbers, or functions of the step of the merge that takes a gradient's
    shared part (in the variants the client's is of the step at which the gradient was sent)
    adagrad: both sides' step size eta, in place of step and own_step
    """
    if variant not in ("aligned", "undelayed", "on_arrival"):
        raise ValueError(variant)
    T, P, d = xg.shape
    dl = xl.shape[2]
    if present is None:
        present = np.ones((T, P), dtype=bool)
    start, v = begin(w0, v0, P, d, dl)
    w = [start.copy() for k in range(P)]  # the client's last download
    server = [start.copy()]
    squares = np.zeros(d)
    own_squares = [np.zeros(dl) for k in range(P)]
    shared = []
    own = []
    in_flight = []  # messages under way to the server
    broadcasts = []  # all ever made, oldest first
    downloaded = [0 for k in range(P)]  # the step at which the client's newest broadcast was made
    waiting = [[] for k in range(P)]  # aligned: (step sent, local gradient) not yet come back
    merged = [0 for k in range(P)]  # the newest step of client k that the server has merged
    for t in range(1, T + 1):
        shared.append([w[k].copy() for k in range(P)])
        own.append([v[k].copy() for k in range(P)])  # predict with (w_{t - beta}, v_t)
        model = server[-1]
        if t % period == 0:
            for k in range(P):
                samples = []  # Z: (global features, local prediction, label) of the period
                g = np.zeros(d)
                own_g = np.zeros(dl)
                for s in range(t - period + 1, t + 1):
                    if not present[s - 1, k]:
                        continue
                    features = xg[s - 1, k]
                    local = xl[s - 1, k] @ own[s - 1][k]
                    # at the pair that predicted: nabla_{i,s} below (7) and (8)
                    error = features @ shared[s - 1][k] + local - y[s - 1, k]
                    g = g + 2.0 * error * features / period  # (10)
                    own_g = own_g + 2.0 * error * xl[s - 1, k] / period
                    samples.append((features, local, y[s - 1, k]))
                if len(samples) == 0:
                    continue
                in_flight.append(
                    {"due": t + up[k], "client": k, "sent": t, "samples": samples, "aligned": g}
                )
                if variant == "aligned":
                    waiting[k].append((t, own_g))
                else:  # 3.2.1: w_{i,t+1} from the gradient of step t
                    v[k], own_squares[k] = descend(
                        v[k], own_g, rate(own_step, t), own_squares[k], adagrad, radius
                    )
            arrived, in_flight = arrivals(in_flight, t)  # (D1)
            if len(arrived) > 0:
                total = np.zeros(d)
                for message in arrived:
                    if variant == "on_arrival":
                        for features, local, label in message["samples"]:
                            error = features @ model + local - label  # 3.2.1, at w_t
                            total = total + 2.0 * error * features / period
                    else:
                        total = total + message["aligned"]
                    merged[message["client"]] = max(merged[message["client"]], message["sent"])
                model, squares = descend(model, total, rate(step, t), squares, adagrad, radius)
            broadcasts.append({"made": t, "body": model.copy(), "merged": list(merged)})  # (D2)
            for k in range(P):
                broadcast = newest_reached(broadcasts, down[k], t, downloaded[k])  # (D3)
                if broadcast is None:
                    continue
                w[k] = broadcast["body"].copy()  # (D4)
                downloaded[k] = broadcast["made"]
                still = []
                for sent, own_g in waiting[k]:
                    if sent <= broadcast["merged"][k]:  # (7): it has made its round trip
                        v[k], own_squares[k] = descend(
                            v[k],
                            own_g,
                            rate(own_step, broadcast["made"]),
                            own_squares[k],
                            adagrad,
                            radius,
                        )
                    else:
                        still.append((sent, own_g))
                waiting[k] = still
        server.append(model.copy())
    return {"shared": np.array(shared), "own": np.array(own), "server": np.array(server)}


def nearest_minimiser(A, b, current, radius):
    """The minimiser of u'Au - 2b'u over |u| <= radius (None: everything) nearest to current.

    A = sum of x x', b = sum of x r: b lies in A's range. In A's eigenbasis the minimisers have
    the coordinates b_i / lambda_i where lambda_i > 0 and any where lambda_i = 0. Inside the ball:
    those that fit. If none fits, the KKT conditions are (A + mu) u = b, |u| = radius, mu > 0:
    u is unique, without part in A's null space, and |u(mu)| falls with mu.
    """
    values, vectors = np.linalg.eigh(A)
    positive = values > 1e-12 * np.max(values, initial=0.0)
    rotated = vectors.T @ b
    here = vectors.T @ current
    fixed = np.zeros_like(b)
    fixed[positive] = rotated[positive] / values[positive]  # pinv(A) b
    free = np.where(positive, 0.0, here)  # current + pinv(A)(b - A current) = fixed + free
    if radius is None or np.sum((fixed + free) ** 2) <= radius**2:
        return vectors @ (fixed + free)
    if np.sum(fixed**2) <= radius**2:  # the free part is cut to what fits, along its own ray
        room = np.sqrt(radius**2 - np.sum(fixed**2))
        return vectors @ (fixed + free * (room / np.sqrt(np.sum(free**2))))
    low = 0.0
    high = np.sqrt(np.sum(rotated[positive] ** 2)) / radius  # |u(mu)| < |b| / mu
    for _ in range(300):
        mu = 0.5 * (low + high)
        if mu in (low, high):
            break
        if np.sum((rotated[positive] / (values[positive] + mu)) ** 2) > radius**2:
            low = mu
        else:
            high = mu
    u = np.zeros_like(b)
    u[positive] = rotated[positive] / (values[positive] + high)
    return vectors @ u


def fedres_erm(xg, xl, y, *, radius, up, down, w0, v0, fictitious=False):
    """Algorithms 1 and 2, eqs (2)-(3); fictitious: eqs (5)-(6). A sync at every step.

    The client re-solves in every round, over all the samples it has seen, with the newest global
    model that it has (2), or with the global prediction that each sample had (5). It
    uploads its sample and the local model that predicted. The server re-solves over all samples
    that have arrived, with each client's newest arrived local model (3), or with the local
    prediction that each sample had (6).
    """
    T, P, d = xg.shape
    dl = xl.shape[2]
    start, v = begin(w0, v0, P, d, dl)
    w = [start.copy() for k in range(P)]
    server = [start.copy()]
    shared = []
    own = []
    local = np.zeros((T, P))  # local[t - 1, k]: the local prediction made at step t
    globe = np.zeros((T, P))  # the global one
    in_flight = []
    broadcasts = []
    downloaded = [0 for k in range(P)]
    received = [[] for k in range(P)]  # the steps (0-based) whose samples have arrived
    newest = [None for k in range(P)]  # the newest arrived local model
    for t in range(1, T + 1):
        shared.append([w[k].copy() for k in range(P)])
        own.append([v[k].copy() for k in range(P)])
        for k in range(P):
            globe[t - 1, k] = xg[t - 1, k] @ w[k]
            local[t - 1, k] = xl[t - 1, k] @ v[k]
            in_flight.append({"due": t + up[k], "client": k, "sent": t, "model": v[k].copy()})
        arrived, in_flight = arrivals(in_flight, t)  # (D1)
        for message in arrived:  # in the order sent: a client's last one is its newest
            received[message["client"]].append(message["sent"] - 1)
            newest[message["client"]] = message["model"]
        model = server[-1]
        if len(arrived) > 0:
            A = np.zeros((d, d))
            b = np.zeros(d)
            for k in range(P):
                if len(received[k]) == 0:
                    continue
                X = xg[received[k], k]
                # (6): w_{i,s} is what predicted at s; (3): w_{i,t - alpha} on every old sample
                partner = local[received[k], k] if fictitious else xl[received[k], k] @ newest[k]
                A = A + X.T @ X
                b = b + X.T @ (y[received[k], k] - partner)
            model = nearest_minimiser(A, b, model, radius)
        broadcasts.append({"made": t, "body": model.copy()})  # (D2)
        for k in range(P):
            broadcast = newest_reached(broadcasts, down[k], t, downloaded[k])  # (D3)
            if broadcast is not None:
                w[k] = broadcast["body"].copy()  # (D4)
                downloaded[k] = broadcast["made"]
            X = xl[:t, k]
            # (5): w^g_{s - beta} is what predicted at s; (2): the new one on every old sample
            partner = globe[:t, k] if fictitious else xg[:t, k] @ w[k]
            v[k] = nearest_minimiser(X.T @ X, X.T @ (y[:t, k] - partner), v[k], radius)
        server.append(model.copy())
    return {"shared": np.array(shared), "own": np.array(own), "server": np.array(server)}


def independent(xg, xl, y, *, step, w0=None, v0=None):
    """Section 6.2's Independent: both blocks at the client; the server never changes."""
    T, P, d = xg.shape
    start, v = begin(w0, v0, P, d, xl.shape[2])
    w = [start.copy() for k in range(P)]
    shared = []
    own = []
    for t in range(1, T + 1):
        shared.append([w[k].copy() for k in range(P)])
        own.append([v[k].copy() for k in range(P)])
        for k in range(P):
            x = np.concatenate([xg[t - 1, k], xl[t - 1, k]])
            joint = np.concatenate([w[k], v[k]])
            joint = joint - step * 2.0 * (x @ joint - y[t - 1, k]) * x
            w[k] = joint[:d]
            v[k] = joint[d:]
    server = [start.copy() for t in range(T + 1)]
    return {"shared": np.array(shared), "own": np.array(own), "server": np.array(server)}


def central(xg, y, *, step, up, down, period=1, w0=None):
    """Section 6.2's Central: the server's block only, on the global features; own is empty.

    (Any other option of fedres_sgd: fedres_sgd with dl = 0 is the same thing.)
    """
    T, P, d = xg.shape
    start, _ = begin(w0, None, P, d, 0)
    w = [start.copy() for k in range(P)]
    server = [start.copy()]
    shared = []
    in_flight = []
    broadcasts = []
    downloaded = [0 for k in range(P)]
    unsent = [np.zeros(d) for k in range(P)]
    for t in range(1, T + 1):
        shared.append([w[k].copy() for k in range(P)])
        for k in range(P):
            error = xg[t - 1, k] @ w[k] - y[t - 1, k]
            unsent[k] = unsent[k] + 2.0 * error * xg[t - 1, k]
        model = server[-1]
        if t % period == 0:
            for k in range(P):
                in_flight.append({"due": t + up[k], "body": unsent[k] / period})  # (10)
                unsent[k] = np.zeros(d)
            arrived, in_flight = arrivals(in_flight, t)  # (D1)
            total = np.zeros(d)
            for message in arrived:
                total = total + message["body"]
            model = model - step * total
            broadcasts.append({"made": t, "body": model.copy()})  # (D2)
            for k in range(P):
                broadcast = newest_reached(broadcasts, down[k], t, downloaded[k])  # (D3)
                if broadcast is not None:
                    w[k] = broadcast["body"].copy()  # (D4)
                    downloaded[k] = broadcast["made"]
        server.append(model.copy())
    own = np.zeros((T, P, 0))
    return {"shared": np.array(shared), "own": own, "server": np.array(server)}


def bandit(xg, xl, rewards, *, explore, uniform_actions, step, own_step):
    """Section 5.1 on FedRes.SGD without delays.

    xg [T, P, A, d], xl [T, P, A, dl], rewards [T, P, A]; explore [T, P]: the rounds that play
    uniform_actions[t, k] and learn from its reward; the others play (12) and do not learn. What
    is learnt from does not depend on the models, so the models come first and (12) after.
    """
    T, P, A, d = xg.shape
    dl = xl.shape[3]
    x = np.zeros((T, P, d))
    z = np.zeros((T, P, dl))
    r = np.zeros((T, P))
    for t in range(T):
        for k in range(P):
            a = uniform_actions[t, k]
            x[t, k] = xg[t, k, a]
            z[t, k] = xl[t, k, a]
            r[t, k] = rewards[t, k, a]
    none = [0 for k in range(P)]
    run = fedres_sgd(
        x, z, r, step=step, own_step=own_step, up=none, down=none, present=np.array(explore)
    )
    actions = np.zeros((T, P), dtype=int)
    for t in range(T):
        for k in range(P):
            if explore[t, k]:
                actions[t, k] = uniform_actions[t, k]
                continue
            best = 0
            scores = [
                xg[t, k, a] @ run["shared"][t, k] + xl[t, k, a] @ run["own"][t, k] for a in range(A)
            ]
            for a in range(A):
                if scores[a] > scores[best]:  # the first on ties
                    best = a
            actions[t, k] = best  # (12)
    return {"actions": actions, **run}
