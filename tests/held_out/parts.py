"""Step sizes, mirror steps, codecs and merges of messages."""

import numpy as np


def rate(step: dict, t: int) -> float:
    """Gives the step size of step t."""
    kind = step["kind"]
    if kind == "constant":
        return float(step["value"])
    if kind == "inverse_sqrt":
        return float(step["scale"] / np.sqrt(t))
    if kind == "inverse_time":
        return float(2.0 / (step["sigma"] * (t + step.get("shift", 0.0))))
    raise ValueError(f"step: unknown kind {kind!r}")


def on_ball(point: np.ndarray, radius: float | None) -> np.ndarray:
    """Projects on the l2 ball around 0; a radius of None leaves the point as it is."""
    norm = np.linalg.norm(point)
    return point if radius is None or norm <= radius else point * (radius / norm)


def on_simplex(point: np.ndarray) -> np.ndarray:
    """Projects on the probability simplex: max(point - c, 0) with the c that makes the sum 1."""
    descending = np.sort(point)[::-1]
    for count in range(point.size, 0, -1):
        cut = (descending[:count].sum() - 1.0) / count
        if descending[count - 1] > cut:
            break
    return np.maximum(point - cut, 0.0)


def p_norm_map(point: np.ndarray, p: float) -> np.ndarray:
    """Gives the gradient of |x|_p^2 / 2; with q = p / (p - 1) in place of p, its inverse."""
    norm = np.sum(np.abs(point) ** p) ** (1.0 / p)
    if norm == 0.0:
        return np.zeros_like(point)
    return np.sign(point) * np.abs(point) ** (p - 1.0) * norm ** (2.0 - p)


def mirror_step(mirror: dict, x: np.ndarray, gradient: np.ndarray, eta: float) -> np.ndarray:
    """Gives argmin over the domain of <gradient, y> + B(y, x) / eta (FedOMD, eq. (3))."""
    domain = mirror.get("domain", {"name": "everything"})
    pair = (mirror.get("map", "euclidean"), domain["name"])
    moved = x - eta * gradient
    if pair == ("euclidean", "everything"):
        return moved
    if pair == ("euclidean", "box"):
        return np.clip(moved, domain["low"], domain["high"])
    if pair == ("euclidean", "l2_ball"):
        return on_ball(moved, domain["radius"])
    if pair == ("euclidean", "simplex"):
        return on_simplex(moved)
    if pair == ("entropy", "simplex"):
        # The largest exponent is taken out: a common factor does not change the normalised point.
        grown = x * np.exp(-eta * (gradient - gradient.min()))
        return grown / grown.sum()
    if pair == ("entropy", "box"):
        # Separable and convex in each coordinate, so that clipping the free minimiser is exact.
        return np.clip(x * np.exp(-eta * gradient), domain["low"], domain["high"])
    if pair == ("p_norm", "everything"):
        p = mirror["p"]
        return p_norm_map(p_norm_map(x, p) - eta * gradient, p / (p - 1.0))
    raise ValueError(f"mirror: no exact step for {pair}")


def blocks(size: int, count: int) -> list[np.ndarray]:
    """Gives the contiguous index blocks of OFedIQ's Definition 2; sizes differ by at most one."""
    return np.array_split(np.arange(size), count)


def travel(codec: dict, body: np.ndarray, t: int, k: int) -> np.ndarray:
    """Gives what the server reads after the unweighted body of client k has travelled at step t."""
    name = codec["name"]
    if name == "plain":
        return body.copy()
    if name == "half":
        largest = float(np.finfo(np.float16).max)
        single = np.clip(body, -largest, largest).astype(np.float32)  # XLA's way from double
        return single.astype(np.float16).astype(np.float64)
    if name == "top_k":
        kept = np.argsort(-np.abs(body))[: codec["count"]]
        sent = np.zeros_like(body)
        sent[kept] = body[kept]
        return sent
    if name == "quantiser":
        return quantised(codec, body, codec["uniform"][t - 1, k])
    raise ValueError(f"codec: unknown name {name!r}")


def quantised(codec: dict, body: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Rounds every entry to a multiple of |block| / s (OFedIQ, eq. (12))."""
    levels = codec["levels"]
    sent = np.zeros_like(body)
    for block in blocks(body.size, codec["blocks"]):
        norm = np.linalg.norm(body[block])
        if norm == 0.0:
            continue
        for i in block:
            level = np.floor(abs(body[i]) / norm * levels + uniform[i])
            sent[i] = norm * np.sign(body[i]) * min(level, levels) / levels
    return sent


def mean_of(collect: dict, bodies: list[np.ndarray], weights: list[float]) -> np.ndarray:
    """Gives the weighted mean of the messages that arrived, or their coordinatewise median."""
    if collect["name"] == "median":
        return np.median(np.stack(bodies), axis=0)
    if collect["name"] != "total":
        raise ValueError(f"collect: unknown name {collect['name']!r}")
    total = sum(weight * body for weight, body in zip(weights, bodies, strict=True))
    return total / sum(weights)


def sum_of(collect: dict, bodies: list[np.ndarray], weights: list[float]) -> np.ndarray:
    """Gives the weighted sum; the median stands in for the weighted mean where it is asked for."""
    return mean_of(collect, bodies, weights) * sum(weights)
