"""The client step of FedOMD (Mitra et al. 2021, eq. (3)) for every mirror map and domain.

y = argmin_{x in X} <g, x> + B_psi(x, x_i) / eta,
B_psi(y, x) = psi(y) - psi(x) - <y - x, grad psi(x)>.

Setting the gradient of (6) to zero gives grad psi(y) = grad psi(x_i) - eta g where X is everything;
each constrained step below states why its correction is exact. Euclidean means psi = |x|^2 / 2.
"""

import numpy as np


def euclidean(x, g, eta):
    """X = R^D: grad psi(x) = x."""
    return x - eta * g


def euclidean_box(x, g, eta, low, high):
    """X = [low, high]^D: (3) separates into coordinates, so each is clipped."""
    return np.clip(x - eta * g, low, high)


def euclidean_ball(x, g, eta, radius):
    """X = {|x|_2 <= radius}: the nearest point of the ball lies on the same ray."""
    z = x - eta * g
    norm = np.sqrt(np.sum(z**2))
    if norm <= radius:
        return z
    return z * (radius / norm)


def euclidean_simplex(x, g, eta):
    """X = {x >= 0, sum x = 1}: the nearest point of the simplex."""
    return project_simplex(x - eta * g)


def project_simplex(z):
    """The point of the simplex nearest to z: x_i = max(z_i - shift, 0), shift such that sum x = 1.

    If exactly the n largest entries stay positive, then shift = (their sum - 1) / n; the right n is
    the largest one whose own smallest entry stays positive.
    """
    descending = np.sort(z)[::-1]
    for n in range(len(z), 0, -1):
        shift = (np.sum(descending[:n]) - 1.0) / n
        if descending[n - 1] - shift > 0:
            break
    return np.maximum(z - shift, 0.0)


def entropy_simplex(x, g, eta):
    """psi = sum x log x on the simplex: log y = log x - eta g - const, const from sum y = 1."""
    y = x * np.exp(-eta * (g - np.min(g)))  # min g goes into const: no overflow
    return y / np.sum(y)


def entropy_box(x, g, eta, low, high):
    """psi = sum x log x on [low, high]^D, low > 0: log y = log x - eta g, separable, so clipped."""
    return np.clip(x * np.exp(-eta * g), low, high)


def link(x, p):
    """grad psi of psi = |x|_p^2 / 2: sign(x_i) |x_i|^(p-1) |x|_p^(2-p), and 0 at 0."""
    norm = np.sum(np.abs(x) ** p) ** (1.0 / p)
    if norm == 0.0:
        return np.zeros_like(x)
    return np.sign(x) * np.abs(x) ** (p - 1.0) * norm ** (2.0 - p)


def inverse_link(theta, p):
    """The inverse of grad psi is the gradient of the conjugate |theta|_q^2 / 2, 1/p + 1/q = 1."""
    return link(theta, p / (p - 1.0))


def p_norm(x, g, eta, p):
    """psi = |x|_p^2 / 2 with p > 1, X = R^D: grad psi(y) = grad psi(x) - eta g."""
    return inverse_link(link(x, p) - eta * g, p)


def p_norm_ball(x, g, eta, p, radius):
    """psi = |x|_p^2 / 2 with p > 1, X = {|x|_p <= radius}.

    On the boundary the multiplier of psi(y) <= radius^2 / 2 gives (1 + multiplier) grad psi(y) =
    grad psi(x) - eta g, and grad psi is homogeneous of degree 1: the free step, scaled radially.
    """
    y = p_norm(x, g, eta, p)
    norm = np.sum(np.abs(y) ** p) ** (1.0 / p)
    if norm <= radius:
        return y
    return y * (radius / norm)
