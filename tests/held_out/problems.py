"""Losses and gradients of one sample or of the mean over a batch, written out by hand."""

import numpy as np

Sample = tuple[np.ndarray | None, np.ndarray]


def places(problem: dict, size: int) -> np.ndarray:
    """Gives the index in the flat parameters of every entry of the table [rows, columns].

    The intercept of softmax is row 0, any other the last row; the features have the other rows. There is
    one column per class (one column for a scalar prediction).
    """
    columns = problem["classes"] if problem["name"] == "softmax" else 1
    return np.arange(size).reshape(-1, columns)


def row(problem: dict, x: np.ndarray) -> np.ndarray:
    """Gives the features and the constant of the intercept, in the order of the table."""
    if not problem.get("intercept", False):
        return x
    first = problem["name"] == "softmax"
    return np.concatenate([[1.0], x] if first else [x, [1.0]])


def scores(problem: dict, params: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Gives z = x.w + b for every column of the table."""
    return row(problem, x) @ params[places(problem, params.size)]


def sample_loss(problem: dict, params: np.ndarray, sample: Sample) -> float:
    """Gives the loss of one sample without the ridge penalty."""
    x, y = sample
    name = problem["name"]
    if name == "quadratic":
        return 0.5 * problem.get("curvature", 1.0) * float(np.sum((params - y) ** 2))
    z = scores(problem, params, x)
    if name == "linear":
        return 0.5 * float((z[0] - y) ** 2)
    if name == "logistic":
        sign = 2.0 * float(y) - 1.0
        return float(np.logaddexp(0.0, -sign * z[0]))
    if name == "softmax":
        return float(z.max() + np.log(np.sum(np.exp(z - z.max()))) - z[int(y)])
    raise ValueError(f"problem: unknown name {name!r}")


def sample_gradient(problem: dict, params: np.ndarray, sample: Sample) -> np.ndarray:
    """Gives the gradient of `sample_loss`."""
    x, y = sample
    name = problem["name"]
    if name == "quadratic":
        return problem.get("curvature", 1.0) * (params - y)
    z = scores(problem, params, x)
    if name == "linear":
        slope = z - y
    elif name == "logistic":
        sign = 2.0 * float(y) - 1.0
        slope = -sign * np.exp(-np.logaddexp(0.0, sign * z))
    elif name == "softmax":
        slope = np.exp(z - z.max())
        slope = slope / slope.sum()
        slope[int(y)] -= 1.0
    else:
        raise ValueError(f"problem: unknown name {name!r}")
    gradient = np.empty_like(params)
    gradient[places(problem, params.size)] = np.outer(row(problem, x), slope)
    return gradient


def loss(problem: dict, params: np.ndarray, batch: list[Sample]) -> float:
    """Gives the mean loss of a batch, with ridge/2 |params|^2 over all parameters."""
    total = sum(sample_loss(problem, params, sample) for sample in batch)
    return total / len(batch) + 0.5 * problem.get("ridge", 0.0) * float(params @ params)


def gradient(problem: dict, params: np.ndarray, batch: list[Sample]) -> np.ndarray:
    """Gives the gradient of `loss`."""
    total = sum(sample_gradient(problem, params, sample) for sample in batch)
    return total / len(batch) + problem.get("ridge", 0.0) * params


def batch_at(problem: dict, data: dict, t: int, k: int) -> list[Sample]:
    """Gives the samples of client k at step t (1-based): one, or n where the data has that axis."""
    y = data["y"]
    if problem["name"] == "quadratic":
        here = y[t - 1, k]
        return [(None, target) for target in here] if y.ndim == 4 else [(None, here)]
    x = data["x"]
    if x.ndim == 4:
        return list(zip(x[t - 1, k], y[t - 1, k], strict=True))
    return [(x[t - 1, k], y[t - 1, k])]


def residual(shared: np.ndarray, partial: float, xg: np.ndarray, y: float) -> float:
    """Gives y - xg.w - xl.v from the local prediction `partial` = xl.v (FedRes, Example 1)."""
    return float(y - xg @ shared - partial)


def shared_gradient(shared: np.ndarray, partial: float, xg: np.ndarray, y: float) -> np.ndarray:
    """Gives the gradient of (y - xg.w - xl.v)^2 by w; computable from what FedRes sends."""
    return -2.0 * residual(shared, partial, xg, y) * xg


def own_gradient(
    shared: np.ndarray, own: np.ndarray, xg: np.ndarray, xl: np.ndarray, y: float
) -> np.ndarray:
    """Gives the gradient of (y - xg.w - xl.v)^2 by v."""
    return -2.0 * residual(shared, float(xl @ own), xg, y) * xl
