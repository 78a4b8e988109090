"""Theorems on FedRes, which the paper states up to constants (Agarwal, Langford and Wei 2020).

Samples are i.i.d. at each client, losses are convex and `smoothness`-smooth, models lie in balls of
`radius` D, gradients have norm at most `gradient` G. `round_trip` is tau, `norm` is
|w^g|^2 + sum_i |w_i|^2 of the best models.
"""

from typing import Any

import numpy as np

from mainstem import check
from mainstem.base import Step
from mainstem.errors import MainstemError
from mainstem.measure import constants
from mainstem.parts import constant
from mainstem.theory import beside
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

    `shared` is d, `own` is d_i (one, or one per client), `noise` is the variance of the *loss*.
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
    r"""FedRes.SGD with its best step (`fedres_convex`), up to constants (eq. (27)).

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
    r"""The bandit of Section 5.1 with its best B (`fedres_exploration`), up to constants.

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
    steps = check.step_counts(owner, "steps", steps)
    return (
        steps if isinstance(steps, int) else steps.astype(float),
        check.integer(owner, "clients", clients, least=1),
        check.integer(owner, "round_trip", round_trip, least=1),
    )


def _amounts(owner: str, **known: float) -> list[float]:
    return [check.positive(owner, name, value) for name, value in known.items()]


# --- the step and the exploration of the theorems -------------------------------------------------


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
    r"""Agarwal et al. 2020, Theorem 2 (Appendix B): the step, the same for the server and the clients.

    .. math:: \eta = \min\Big\{ \sqrt{\frac{N}{T P \sigma^2}},
              \sqrt[3]{\frac{N}{\gamma P^3 G^2 \tau^2 T}} \Big\}, \quad
              N = |w^g_*|^2 + \sum_i |w_{i,*}|^2

    `norm` is N, `noise` :math:`\sigma^2`, `smoothness` :math:`\gamma`, `gradient` G, `round_trip`
    :math:`\tau`.

    >>> rule = fedres_convex(1000, clients=10, norm=11, noise=1, smoothness=2, gradient=2, round_trip=1)
    >>> round(rule.size, 5)
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
    r"""Agarwal et al. 2020, Theorem 3 (Appendix D): B, with exploration at every B-th step.

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


# --- the runs to which the theorems apply ---------------------------------------------------------


def of_run(run: Any, at: np.ndarray) -> beside.Beside:
    """A run's personal regret and the rate of Theorem 2.

    Its constants are rough estimates, from the first samples and from the losses and models at the end.
    """
    beside.sent_as_it_is(run)
    beside.constant_of(run)
    if beside.declared(run, "variant") != "aligned":
        raise MainstemError("bound: the theorem is for aligned gradients")
    if not (run.algorithm.collect.additive or run.algorithm.collect.based):
        raise MainstemError("bound: the theorem is for sums of gradients")
    linear, seed = run.problem.linear, run.summary.seeds[0]
    prefix = beside.prefix_of(run, min(run.summary.steps, 200), seed)
    squares = constants.row_squares(prefix)
    models = run.client_models.reshape(len(run.summary.seeds), run.summary.clients, -1)[0]
    shared = np.size(run.models["server"]) // len(run.summary.seeds)
    losses = np.atleast_2d(run.loss)
    late = float(np.mean(losses[:, -max(1, losses.shape[1] // 10) :]))
    links = run.spec["simulate"].get("network", {"up": 0, "down": 0})
    norms = np.sum(models[:, :shared] ** 2, axis=1).mean(), np.sum(models[:, shared:] ** 2)
    rate = fedres_theorem_2(
        at,
        clients=run.summary.clients,
        norm=max(float(sum(norms)), 1e-12),
        noise=max(2 * linear.bend * late * float(squares.mean()), 1e-12),
        smoothness=linear.bend * float(squares.max()),
        gradient=float(constants.row_gradients(prefix, prefix.start).max()),
        radius=max(float(np.sqrt(np.sum(models**2, axis=1)).max()), 1e-12),
        round_trip=1 + int(np.max(links["up"]) + np.max(links["down"])),
    )
    measured = beside.regret_at(run, at, "personal") / at
    return beside.Beside(measured, rate.fitted(measured.mean(axis=0)))


THEOREMS = (fedres_theorem_1, fedres_theorem_2, fedres_theorem_3)
