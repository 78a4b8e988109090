"""FedRes's step size and exploration period, as its theorems choose them (Agarwal et al. 2020)."""

from mainstem import check


def fedres_step(
    steps: int,
    clients: int,
    *,
    norm: float,
    noise: float,
    smoothness: float,
    gradient: float,
    round_trip: int,
) -> float:
    r"""The step of Theorem 2 (Appendix B), the same for the server and the clients.

    .. math:: \eta = \min\Big\{ \sqrt{\frac{N}{T P \sigma^2}},
              \sqrt[3]{\frac{N}{\gamma P^3 G^2 \tau^2 T}} \Big\}, \quad
              N = |w^g_*|^2 + \sum_i |w_{i,*}|^2

    `norm` is N, `noise` :math:`\sigma^2`, `smoothness` :math:`\gamma`, `gradient` G, `round_trip`
    :math:`\tau`.

    >>> round(fedres_step(1000, 10, norm=11, noise=1, smoothness=2, gradient=2, round_trip=1), 5)
    0.01112
    """
    steps = check.integer("fedres_step", "steps", steps, least=1)
    clients = check.integer("fedres_step", "clients", clients, least=1)
    tau = check.integer("fedres_step", "round_trip", round_trip, least=1)
    known = {"norm": norm, "noise": noise, "smoothness": smoothness, "gradient": gradient}
    for name, value in known.items():
        check.positive("fedres_step", name, value)
    statistical = (norm / (steps * clients * noise)) ** 0.5
    delayed = (norm / (smoothness * clients**3 * gradient**2 * tau**2 * steps)) ** (1 / 3)
    return float(min(statistical, delayed))


def exploration(
    steps: int,
    clients: int,
    actions: int,
    *,
    norm: float,
    noise: float,
    smoothness: float,
    gradient: float,
    radius: float,
) -> int:
    r"""B of Theorem 3 (Appendix D): explore on every B-th step.

    .. math:: B = \min\Big\{ \Big(\frac{PT}{K^4 N \sigma^2}\Big)^{1/5},
              \frac{T^{1/4}}{(K^6 \gamma D^4 G^2)^{1/8}}, \frac{T^{1/3}}{(K^2 D G)^{1/3}} \Big\}

    and at least 1. The constants of the theorem are not tight; the delay does not enter.

    >>> exploration(10**6, 20, 5, norm=2, noise=0.01, smoothness=2, gradient=1, radius=1)
    8
    """
    steps = check.integer("exploration", "steps", steps, least=1)
    clients = check.integer("exploration", "clients", clients, least=1)
    actions = check.integer("exploration", "actions", actions, least=2)
    known = {"norm": norm, "noise": noise, "smoothness": smoothness, "gradient": gradient}
    for name, value in (known | {"radius": radius}).items():
        check.positive("exploration", name, value)
    statistical = (clients * steps / (actions**4 * norm * noise)) ** 0.2
    smooth = steps**0.25 / (actions**6 * smoothness * radius**4 * gradient**2) ** 0.125
    bounded = (steps / (actions**2 * radius * gradient)) ** (1 / 3)
    return max(1, int(min(statistical, smooth, bounded)))
