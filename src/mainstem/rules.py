"""The step size of every theorem, as a part: ``fedomd(step=rules.fedomd_convex(...))``.

Two more choices that theorems make are here: FedSEA's longest gap and FedRes's exploration period.
"""

import math

from scipy import optimize

from mainstem import check
from mainstem.base import Step
from mainstem.parts.step import constant, inverse_time
from mainstem.spec import recorded
from mainstem.theory import fedsea, ofediq

__all__ = [
    "dynamic_fedavg_drift",
    "fedomd_convex",
    "fedomd_strongly_convex",
    "fedres_convex",
    "fedsea_convex",
    "fedsea_printed",
    "fedsea_strongly_convex",
    "ofediq_convex",
]

BELOW = 0.999  # of a limit that the step must stay below


@recorded
def fedomd_convex(steps: int, *, gap: int, lipschitz: float, divergence: float) -> Step:
    r"""Mitra et al. 2021, Theorem 1: :math:`\eta = D / (L \sqrt{5 \tau T})`.

    >>> fedomd_convex(500, gap=4, lipschitz=2.0, divergence=4.0).rate((), None, 1)[0]
    0.01
    """
    owner = "fedomd_convex"
    steps, gap = (
        check.integer(owner, "steps", steps, least=1),
        check.integer(owner, "gap", gap, least=1),
    )
    lipschitz = check.positive(owner, "lipschitz", lipschitz)
    divergence = check.positive(owner, "divergence", divergence)
    return constant(math.sqrt(divergence / (5 * gap * steps)) / lipschitz)


@recorded
def fedomd_strongly_convex(curvature: float) -> Step:
    r"""Mitra et al. 2021, Theorem 2: :math:`\eta_t = 2 / (\sigma t) = 1 / (c t)`."""
    return inverse_time(2 * check.positive("fedomd_strongly_convex", "curvature", curvature))


@recorded
def fedsea_convex(
    steps: int,
    *,
    clients: int,
    smoothness: float,
    distance: float,
    noise: float,
    gap: int = 1,
    spatial: float = 0.0,
    temporal: float = 0.0,
) -> Step:
    """Sahu et al. 2026, Theorem 1: the constant step at which its bound is smallest."""
    check.positive("fedsea_convex", "distance", distance)
    limit = fedsea.fedsea_limit(check.positive("fedsea_convex", "smoothness", smoothness), gap)

    def bound(log_step: float) -> float:
        return float(
            fedsea.fedsea_theorem_1(
                check.integer("fedsea_convex", "steps", steps, least=1),
                clients=clients,
                gap=gap,
                step=min(math.exp(log_step), limit),
                smoothness=smoothness,
                distance=distance,
                noise=noise,
                spatial=spatial,
                temporal=temporal,
            )
        )

    around = math.log(limit) - 40, math.log(limit)
    found = optimize.minimize_scalar(bound, bounds=around, method="bounded")
    best = min(found.x, around[1], key=bound)
    return constant(min(math.exp(best), limit))


@recorded
def fedsea_strongly_convex(curvature: float, *, smoothness: float, gap: int = 1) -> Step:
    r"""Sahu et al. 2026, Theorem 2, shifted: :math:`\eta_t = 2 / (\mu (t + t_0))`, the least stable t_0.

    The one to take; `fedsea_printed` has t_0 = 0, which is unstable for t below the condition
    number.
    """
    shift = fedsea.fedsea_shift(smoothness=smoothness, curvature=curvature, gap=gap)
    return inverse_time(curvature, shift)


@recorded
def fedsea_printed(curvature: float) -> Step:
    r"""Sahu et al. 2026, Theorem 2 as printed: :math:`\eta_t = 2 / (\mu t)`."""
    return inverse_time(check.positive("fedsea_printed", "curvature", curvature))


def fedsea_gap(steps: int, clients: int) -> int:
    """Sahu et al. 2026, Remark 3: the longest tau that keeps the rate, T^(1/4) / M^(3/4), at least 1.

    >>> fedsea_gap(10**8, 10)
    17
    """
    steps = check.integer("fedsea_gap", "steps", steps, least=1)
    clients = check.integer("fedsea_gap", "clients", clients, least=1)
    return max(1, int(steps**0.25 / clients**0.75))


@recorded
def ofediq_convex(
    steps: int,
    *,
    clients: int,
    smoothness: float,
    distance: float,
    variance: float,
    rate: float = 1.0,
    period: int = 1,
    levels: int | None = None,
    blocks: int = 1,
    parameters: int | None = None,
) -> Step:
    """Kwon et al. 2023, Corollary 1, kept inside the condition of Theorem 1 or 2.

    FedOGD has rate 1, OFedAvg a rate, OFedIQ the rest.
    """
    owner = "ofediq_convex"
    smooth = check.positive(owner, "smoothness", smoothness)
    distance = check.positive(owner, "distance", distance)
    variance = check.positive(owner, "variance", variance)
    alpha = ofediq.ofediq_alpha(
        clients=clients,
        rate=rate,
        period=period,
        levels=levels,
        blocks=blocks,
        parameters=parameters,
    )
    steps = check.integer(owner, "steps", steps, least=1)
    best = float(ofediq.corollary_step(steps, alpha=alpha, distance=distance, variance=variance))
    if levels is None and period == 1:
        limit = ofediq.ofedavg_limit(rate, smooth)
    else:
        rounded = 0.0 if levels is None else ofediq.rounding_variance(parameters, levels, blocks)  # type: ignore[arg-type]
        limit = ofediq.ofediq_limit(rate, smooth, period, clients, rounded)
    return constant(min(best, BELOW * limit))


@recorded
def dynamic_fedavg_drift(*, noise: float, disagreement: float, drift: float) -> Step:
    r"""Rizk et al. 2020: noise and drift of (28) are equal at :math:`\sigma_q / \sqrt{\sigma_s^2 + \epsilon^2}`.

    All constants are taken as 1; `measure.tracking` measures them, and its `best_step` is nearer.
    """
    owner = "dynamic_fedavg_drift"
    drift = check.positive(owner, "drift", drift)
    shaken = check.at_least(owner, "noise", noise, 0) + check.at_least(
        owner, "disagreement", disagreement, 0
    )
    if shaken == 0:
        raise check.refuse(owner, "noise", "be above 0, or disagreement", noise)
    return constant(math.sqrt(drift / shaken))


@recorded
def fedres_convex(
    steps: int,
    *,
    clients: int,
    norm: float,
    noise: float,
    smoothness: float,
    gradient: float,
    round_trip: int,
) -> Step:
    r"""Agarwal et al. 2020, Theorem 2 (Appendix B), the same for the server and the clients.

    .. math:: \eta = \min\Big\{ \sqrt{\frac{N}{T P \sigma^2}},
              \sqrt[3]{\frac{N}{\gamma P^3 G^2 \tau^2 T}} \Big\}, \quad
              N = |w^g_*|^2 + \sum_i |w_{i,*}|^2

    `norm` is N, `noise` :math:`\sigma^2`, `smoothness` :math:`\gamma`, `gradient` G, `round_trip`
    :math:`\tau`.

    >>> rule = fedres_convex(1000, clients=10, norm=11, noise=1, smoothness=2, gradient=2, round_trip=1)
    >>> round(rule.rate((), None, 1)[0], 5)
    0.01112
    """
    owner = "fedres_convex"
    steps = check.integer(owner, "steps", steps, least=1)
    clients = check.integer(owner, "clients", clients, least=1)
    tau = check.integer(owner, "round_trip", round_trip, least=1)
    known = {"norm": norm, "noise": noise, "smoothness": smoothness, "gradient": gradient}
    for name, value in known.items():
        check.positive(owner, name, value)
    statistical = (norm / (steps * clients * noise)) ** 0.5
    delayed = (norm / (smoothness * clients**3 * gradient**2 * tau**2 * steps)) ** (1 / 3)
    return constant(float(min(statistical, delayed)))


def fedres_exploration(
    steps: int,
    *,
    clients: int,
    actions: int,
    norm: float,
    noise: float,
    smoothness: float,
    gradient: float,
    radius: float,
) -> int:
    r"""Agarwal et al. 2020, Theorem 3 (Appendix D): explore on every B-th step.

    .. math:: B = \min\Big\{ \Big(\frac{PT}{K^4 N \sigma^2}\Big)^{1/5},
              \frac{T^{1/4}}{(K^6 \gamma D^4 G^2)^{1/8}}, \frac{T^{1/3}}{(K^2 D G)^{1/3}} \Big\}

    and at least 1. The constants of the theorem are not tight; the delay does not enter.

    >>> fedres_exploration(10**6, clients=20, actions=5, norm=2, noise=0.01, smoothness=2, gradient=1,
    ...                    radius=1)
    8
    """
    owner = "fedres_exploration"
    steps = check.integer(owner, "steps", steps, least=1)
    clients = check.integer(owner, "clients", clients, least=1)
    actions = check.integer(owner, "actions", actions, least=2)
    known = {"norm": norm, "noise": noise, "smoothness": smoothness, "gradient": gradient}
    for name, value in (known | {"radius": radius}).items():
        check.positive(owner, name, value)
    statistical = (clients * steps / (actions**4 * norm * noise)) ** 0.2
    smooth = steps**0.25 / (actions**6 * smoothness * radius**4 * gradient**2) ** 0.125
    bounded = (steps / (actions**2 * radius * gradient)) ** (1 / 3)
    return max(1, int(min(statistical, smooth, bounded)))
