"""Theorems on FedOMD (Mitra, Hassani and Pappas 2021).

All hold for full participation, convex losses that are L-Lipschitz in the norm for which psi is
1-strongly convex (Assumption 1), and a divergence that is convex in its second argument
(Assumption 2: euclidean and entropy, not the p-norm map). `period` is tau, the most steps between two
syncs. `divergence` is D^2, the largest Bregman divergence from the first model to a point of the
domain: half the squared distance for the euclidean map, log n for the entropy map from the uniform
point. `curvature` is c with l(y) >= l(x) + <l'(x), y - x> + c B(y, x): the ordinary one for the
euclidean map. The sigma of eq. (9) is 2 c.
"""

import math
from typing import Any

import numpy as np

from mainstem import check
from mainstem.base import Step
from mainstem.errors import MainstemError
from mainstem.measure import constants, geometry
from mainstem.parts import constant, euclidean, inverse_time
from mainstem.theory import beside
from mainstem.theory.bound import Bound

COLLECTIVE = "collective regret, eq. (2)"
RISK = "excess risk of the average predictor, eq. (12)"


def fedomd_theorem_1(
    steps: Any, *, period: int, lipschitz: Any, divergence: Any, step: float | None = None
) -> Bound:
    r"""Convex losses, a constant step (eqs. (7) and (8)).

    .. math:: R_T \le \frac{D^2}{\eta} + 5 \eta L^2 \tau T, \qquad
              \eta = \frac{D}{L \sqrt{5 \tau T}}: \quad R_T \le 5 L D \sqrt{\tau T}

    Without `step`, eq. (8) with its own step.

    >>> float(fedomd_theorem_1(100, period=4, lipschitz=2.0, divergence=9.0))
    600.0
    """
    owner = "fedomd_theorem_1"
    steps, period = (
        check.step_counts(owner, "steps", steps),
        check.integer(owner, "period", period, least=1),
    )
    lipschitz = check.amounts(owner, "lipschitz", lipschitz, above=0)
    divergence = check.amounts(owner, "divergence", divergence, above=0)
    if step is None:
        terms = {"regret": 5 * lipschitz * np.sqrt(divergence * period * steps)}
        return Bound("FedOMD, Theorem 1 (8)", COLLECTIVE, steps, terms)
    step = check.positive(owner, "step", step)
    terms = {"start": divergence / step, "steps": 5 * step * lipschitz**2 * period * steps}
    return Bound("FedOMD, Theorem 1 (7)", COLLECTIVE, steps, terms)


def fedomd_theorem_2(steps: Any, *, period: int, lipschitz: Any, curvature: float) -> Bound:
    r"""Strongly convex losses, :math:`\eta_t = 2 / (\sigma t) = 1 / (c t)` (eq. (10)).

    .. math:: R_T \le \frac{17 L^2 \tau}{\sigma} (1 + \log T), \qquad \sigma = 2 c

    >>> float(fedomd_theorem_2(1, period=2, lipschitz=3.0, curvature=1.0))
    153.0
    """
    owner = "fedomd_theorem_2"
    steps, period = (
        check.step_counts(owner, "steps", steps),
        check.integer(owner, "period", period, least=1),
    )
    lipschitz = check.amounts(owner, "lipschitz", lipschitz, above=0)
    curvature = check.positive(owner, "curvature", curvature)
    terms = {"regret": 17 * lipschitz**2 * period * (1 + np.log(steps)) / (2 * curvature)}
    return Bound("FedOMD, Theorem 2 (10)", COLLECTIVE, steps, terms)


def fedomd_theorem_3(
    steps: Any,
    *,
    clients: int,
    period: int,
    lipschitz: Any,
    divergence: Any,
    largest: float,
    risk: float,
) -> Bound:
    r"""I.i.d. losses in [0, B], Theorem 1's step: with probability 1 - delta (eq. (13)),

    .. math:: L(\hat x_T) - \min L \le 5 L D \sqrt{\tau / T} + 2 B \sqrt{(2 / T) \log(2 m / \delta)}

    for the average predictor (14), `measure.average_model(run)`. `largest` is B, `risk` is delta.
    """
    owner = "fedomd_theorem_3"
    luck = _luck(owner, steps, clients, largest, risk)
    regret = fedomd_theorem_1(steps, period=period, lipschitz=lipschitz, divergence=divergence)
    terms = {"regret": regret.value / np.asarray(steps, float), "luck": luck}
    return Bound(f"FedOMD, Theorem 3 (13), risk {risk:g}", RISK, regret.steps, terms)


def fedomd_theorem_3_strongly_convex(
    steps: Any,
    *,
    clients: int,
    period: int,
    lipschitz: Any,
    curvature: float,
    largest: float,
    risk: float,
) -> Bound:
    r"""Theorem 3 for strongly convex losses, from Theorem 2 and with its step (end of Section V).

    .. math:: \frac{17 L^2 \tau (1 + \log T)}{\sigma T} + 2 B \sqrt{(2 / T) \log(2 m / \delta)}
    """
    owner = "fedomd_theorem_3_strongly_convex"
    luck = _luck(owner, steps, clients, largest, risk)
    regret = fedomd_theorem_2(steps, period=period, lipschitz=lipschitz, curvature=curvature)
    terms = {"regret": regret.value / np.asarray(steps, float), "luck": luck}
    return Bound(f"FedOMD, Theorem 3's twin, risk {risk:g}", RISK, regret.steps, terms)


def _luck(owner: str, steps: Any, clients: int, largest: float, risk: float) -> Any:
    """The term of the Azuma-Hoeffding inequality."""
    steps = check.step_counts(owner, "steps", steps)
    clients = check.integer(owner, "clients", clients, least=1)
    largest = check.positive(owner, "largest", largest)
    if not 0 < check.number(owner, "risk", risk) < 1:
        raise check.refuse(owner, "risk", "lie in (0, 1)", risk)
    return 2 * largest * np.sqrt(2 / steps * np.log(2 * clients / risk))


# --- the steps of the theorems --------------------------------------------------------------------


def fedomd_convex(steps: int, *, period: int, lipschitz: float, divergence: float) -> Step:
    r"""Mitra et al. 2021, Theorem 1: :math:`\eta = D / (L \sqrt{5 \tau T})`.

    >>> fedomd_convex(500, period=4, lipschitz=2.0, divergence=4.0)
    constant(size=0.01)
    """
    owner = "fedomd_convex"
    steps, period = (
        check.integer(owner, "steps", steps, least=1),
        check.integer(owner, "period", period, least=1),
    )
    lipschitz = check.positive(owner, "lipschitz", lipschitz)
    divergence = check.positive(owner, "divergence", divergence)
    return constant(math.sqrt(divergence / (5 * period * steps)) / lipschitz)


def fedomd_strongly_convex(curvature: float) -> Step:
    r"""Mitra et al. 2021, Theorem 2: :math:`\eta_t = 2 / (\sigma t) = 1 / (c t)`."""
    return inverse_time(2 * check.positive("fedomd_strongly_convex", "curvature", curvature))


# --- the runs to which the theorems apply ---------------------------------------------------------


def of_run(run: Any, at: np.ndarray) -> beside.Beside:
    """A run's collective regret and the bound of Theorem 1 or 2, depending on its step."""
    beside.everyone_heard(run)
    beside.plain_exchange(run)
    mirror, steps = run.algorithm.mirror or euclidean(run.algorithm.domain), run.summary.steps
    schedule, period = beside.schedule_of(run), geometry.longest_period(run.algorithm.sync, steps)
    if mirror.dual_norm is None:
        raise MainstemError("bound: Assumption 2 fails for this mirror map")

    def of(seed: int) -> Bound:
        prefix = beside.prefix_of(run, steps, seed)
        steepest = constants.lipschitz(prefix, mirror.dual_norm)
        if steepest.how == "at least" or not np.isfinite(steepest.value):
            raise MainstemError("bound: the losses have no known Lipschitz constant on the domain")
        if isinstance(schedule, float):
            if not mirror.domain.bounded:
                raise MainstemError("bound: Theorem 1 wants a bounded domain: give a mirror")
            far = float(geometry.divergence(mirror, prefix.start))
            # A map of modulus s is s times one of modulus 1: the theorem for that has L / sqrt(s).
            known = {
                "lipschitz": steepest.value / math.sqrt(mirror.strong_convexity),
                "divergence": far,
            }
            return fedomd_theorem_1(at, period=period, step=schedule, **known)
        curve = float(constants.curvature(prefix))
        steep = schedule.sigma > 2 * curve * (1 + 1e-6)
        if schedule.shift > 1e-6 or steep or not mirror.quadratic:
            raise MainstemError(
                "bound: Theorem 2 is for the step 2 / (sigma t) with sigma at most twice the "
                f"curvature {curve:g}"
            )
        return fedomd_theorem_2(
            at, period=period, lipschitz=steepest.value, curvature=schedule.sigma / 2
        )

    bound = beside.averaged(run, of)  # first: it checks the conditions, and regret takes long
    return beside.Beside(beside.regret_at(run, at, "collective"), bound)


THEOREMS = (
    fedomd_theorem_1,
    fedomd_theorem_2,
    fedomd_theorem_3,
    fedomd_theorem_3_strongly_convex,
)
