"""FedRes's theorems, which the paper gives up to constants (Agarwal, Langford and Wei 2020).

Samples are i.i.d. at each client, losses convex and `smoothness`-smooth, models in balls of
`radius` D, gradients of norm at most `gradient` G. `round_trip` is tau, `norm` is
|w^g|^2 + sum_i |w_i|^2 of the best models.
"""

from typing import Any

import numpy as np

from mainstem import check
from mainstem.theory.bound import Rate

PERSONAL = "mean personal regret of a client and step"


def fedres_theorem_1(
    steps: Any,
    *,
    clients: int,
    shared: int,
    own: Any,
    noise: float,
    smoothness: float,
    radius: float,
    round_trip: int,
) -> Rate:
    r"""FedRes.ERM, up to constants and logarithms (eqs. (4) and (21)).

    .. math:: \sqrt{\frac{(d + \sum_i d_i) \sigma^2}{P T}}
              + \frac{(1 + D^2 \gamma) \tau^{3/4}}{T^{3/4}}
              + \frac{(1 + D^2 \gamma) \tau + d + \sum_i d_i}{T}

    `shared` is d, `own` d_i (one, or one for each client), `noise` the variance of the *loss*.
    """
    owner = "fedres_theorem_1"
    steps, clients, tau = _sizes(owner, steps, clients, round_trip)
    shared = check.integer(owner, "shared", shared, least=1)
    sizes = shared + np.broadcast_to(check.counts(owner, "own", own), clients).sum()
    noise, smooth, radius = _amounts(owner, noise=noise, smoothness=smoothness, radius=radius)
    hard = 1 + radius**2 * smooth
    terms = {
        "noise": np.sqrt(sizes * noise / (clients * steps)),
        "delay": hard * tau**0.75 / steps**0.75,
        "start": (hard * tau + sizes) / steps,
    }
    return Rate("FedRes, Theorem 1 (4)", PERSONAL, steps, terms)


def fedres_theorem_2(
    steps: Any,
    *,
    clients: int,
    norm: float,
    noise: float,
    smoothness: float,
    gradient: float,
    radius: float,
    round_trip: int,
) -> Rate:
    r"""FedRes.SGD with its best step (`rules.fedres_convex`), up to constants (eq. (27)).

    .. math:: \sqrt{\frac{N \sigma^2}{P T}} + \frac{(\gamma D^4 G^2 \tau^2)^{1/3}}{T^{2/3}}
              + \frac{D G \tau}{T}
    """
    owner = "fedres_theorem_2"
    steps, clients, tau = _sizes(owner, steps, clients, round_trip)
    norm, noise, smooth, gradient, radius = _amounts(
        owner, norm=norm, noise=noise, smoothness=smoothness, gradient=gradient, radius=radius
    )
    terms = {
        "noise": np.sqrt(norm * noise / (clients * steps)),
        "delay": (smooth * radius**4 * gradient**2 * tau**2) ** (1 / 3) / steps ** (2 / 3),
        "start": radius * gradient * tau / steps,
    }
    return Rate("FedRes, Theorem 2 (9)", PERSONAL, steps, terms)


def fedres_theorem_3(
    steps: Any,
    *,
    clients: int,
    actions: int,
    norm: float,
    noise: float,
    smoothness: float,
    gradient: float,
    radius: float,
    round_trip: int,
) -> Rate:
    r"""The bandit of Section 5.1 with its best B (`rules.fedres_exploration`), up to constants.

    .. math:: \Big(\frac{K^4 N \sigma^2}{P T}\Big)^{1/5} + \frac{(K^6 \gamma D^4 G^2)^{1/8}}{T^{1/4}}
              + \frac{K (\gamma D^4 G^2 \tau^2)^{1/6} + (K^2 D G)^{1/3}}{T^{1/3}}
              + \frac{K \sqrt{D G \tau}}{\sqrt T}
    """
    owner = "fedres_theorem_3"
    steps, clients, tau = _sizes(owner, steps, clients, round_trip)
    actions = check.integer(owner, "actions", actions, least=2)
    norm, noise, smooth, gradient, radius = _amounts(
        owner, norm=norm, noise=noise, smoothness=smoothness, gradient=gradient, radius=radius
    )
    hard = smooth * radius**4 * gradient**2
    delayed = actions * (hard * tau**2) ** (1 / 6) + (actions**2 * radius * gradient) ** (1 / 3)
    terms = {
        "noise": (actions**4 * norm * noise / (clients * steps)) ** (1 / 5),
        "exploring": (actions**6 * hard) ** (1 / 8) / steps**0.25,
        "delay": delayed / steps ** (1 / 3),
        "start": actions * np.sqrt(radius * gradient * tau) / np.sqrt(steps),
    }
    return Rate("FedRes, Theorem 3", "mean regret of a client and step, eq. (11)", steps, terms)


def _sizes(owner: str, steps: Any, clients: int, round_trip: int) -> tuple[Any, int, int]:
    steps = check.horizons(owner, "steps", steps)
    return (
        steps if isinstance(steps, int) else steps.astype(float),
        check.integer(owner, "clients", clients, least=1),
        check.integer(owner, "round_trip", round_trip, least=1),
    )


def _amounts(owner: str, **known: float) -> list[float]:
    return [check.positive(owner, name, value) for name, value in known.items()]
