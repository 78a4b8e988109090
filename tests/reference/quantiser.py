"""OFedIQ's (s, b)-stochastic quantiser and planner (Kwon, Park and Hong 2023, Section 4.2).

levels = s, blocks = b; logarithms are base 2 throughout.
"""

import math

import numpy as np


def block_sizes(D, blocks):
    """Definition 2: contiguous blocks of near-equal size; the first D mod b are one longer."""
    sizes = []
    for block in range(blocks):
        if block < D % blocks:
            sizes.append(D // blocks + 1)
        else:
            sizes.append(D // blocks)
    return sizes


def quantise(v, levels, blocks, uniform):
    """Definition 2, (12), with the random numbers given: uniform[i] in [0, 1) rounds entry i.

    With z = |v_i| / |v| s, floor(z + u) is m with probability 1 - (z - m) and m + 1 otherwise.
    """
    out = np.zeros(len(v))
    start = 0
    for size in block_sizes(len(v), blocks):
        norm = 0.0
        for i in range(start, start + size):
            norm = norm + v[i] ** 2
        norm = math.sqrt(norm)  # |u_{I_l}|
        for i in range(start, start + size):
            if norm > 0.0:  # a zero block stays zero
                level = math.floor(abs(v[i]) / norm * levels + uniform[i])
                level = min(level, levels)  # rounding errors can give s + 1
                out[i] = norm * np.sign(v[i]) * (level / levels)  # (12)
        start = start + size
    return out


def bits(D, levels, blocks, word=32):
    """(13): a word per block for its norm, a sign and a level of 0..s per entry."""
    return word * blocks + D * (1 + math.log2(levels + 1))


def variance_factor(D, levels, blocks):
    """sigma_q^2, below (13): E|Q(u) - u|^2 <= sigma_q^2 |u|^2."""
    longest = math.ceil(D / blocks)
    return min(longest / levels**2, math.sqrt(longest) / levels)


def objective(s, gamma):
    """(20), to be minimised over s = 1, 2, ..."""
    return math.log2(s + 1) / 16 + 4 * (gamma / s) ** (2 / 3)


def plan(gamma, D):
    """Algorithm 3: (s, b, p) for a fraction gamma of FedOGD's uplink bits; b >= 1 and p <= 1."""
    s = 1
    candidate = 2
    while math.log2(candidate + 1) / 16 <= objective(s, gamma):  # beyond, the first term is too big
        if objective(candidate, gamma) < objective(s, gamma):
            s = candidate
        candidate = candidate + 1
    rho = (gamma / s) ** (2 / 3)  # (19)
    b = max(math.floor(rho * D), 1)
    p = min(32 * gamma / (1 + 32 * rho + math.log2(s + 1)), 1.0)
    return s, b, p
