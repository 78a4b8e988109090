"""Parameter planner: the parameters of OFedIQ for an uplink budget (Kwon et al. 2023, Algorithm 3)."""

import math
from typing import NamedTuple

from mainstem import check


class Plan(NamedTuple):
    """The parameters of OFedIQ, and the uplink that they use."""

    rate: float  # p, the probability that a client uploads at a step
    levels: int  # s of the quantiser
    blocks: int  # b of the quantiser
    bits: float  # uplink bits for each client and step
    spent: float  # those bits as a share of plain 32-bit uploads at every step


def plan(budget: float, parameters: int) -> Plan:
    r"""Levels, blocks and rate for `budget`, the share of FedOGD's uplink that may be used.

    The levels minimise :math:`\log_2(s+1)/16 + 4 (\gamma/s)^{2/3}` over the integers; with
    :math:`\rho = (\gamma/s)^{2/3}`, b is floor(rho D) and p is 32 gamma / (1 + 32 rho + log2(s+1)).
    A rate above 1 is reduced to 1. At least one block is used; if a small model then spends more than the
    budget, the rate is reduced. `spent` is the share that is used.

    >>> plan(budget=0.01, parameters=34826)[:3]
    (0.0861..., 3, 777)
    >>> plan(budget=0.1, parameters=34826)[:3]
    (0.5150..., 17, 1134)
    """
    budget = check.positive("plan", "budget", budget)
    if budget > 1:
        raise check.refuse("plan", "budget", "lie in (0, 1]", budget)
    parameters = check.integer("plan", "parameters", parameters, least=1)
    levels = _levels(budget)
    density = (budget / levels) ** (2 / 3)
    blocks = max(1, math.floor(density * parameters))
    rate = min(1.0, 32 * budget / (1 + 32 * density + math.log2(levels + 1)))
    message = 32 * blocks + parameters * (1 + math.log2(levels + 1))
    if blocks == 1:
        rate = min(rate, 32 * parameters * budget / message)
    bits = rate * message
    return Plan(rate, levels, blocks, bits, bits / (32 * parameters))


def _levels(budget: float) -> int:
    """The best integer s; the search stops where the first term alone exceeds the best value."""
    best, value, s = 1, math.inf, 1
    while math.log2(s + 1) / 16 < value:
        here = math.log2(s + 1) / 16 + 4 * (budget / s) ** (2 / 3)
        if here < value:
            best, value = s, here
        s += 1
    return best
