"""Theorems on FedSEA with explicit constants (Sahu, Jawanpuria and Sharma 2026).

Both bound the *expected* regret, eq. (3). They assume unbiased gradients of bounded variance (Assumption 2),
L-smooth expected losses (3), convex (4) or mu-strongly convex (5), and that no projection is ever active.
`clients` is M, `period` tau, `smoothness` L, `distance` |x_1 - x*|. `noise`, `spatial` and `temporal` are
sigma^2, zeta^2 and K^2 of eqs. (8), (4), (5): their means over the steps in Theorem 1 (eq. (6)),
their maxima in Theorem 2.

The paper omits its constants, and those of its lemmas are inconsistent. Here Lemma 3 has 4, 12 and 24 (its
printed proof has 2 for 12, its statement 12 for 24). Lemma 4 has 15 for zeta and 30 for K, as its own
derivation gives.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import optimize

from mainstem import check
from mainstem.base import Falling, Step
from mainstem.errors import MainstemError
from mainstem.measure import geometry
from mainstem.measure.heterogeneity import heterogeneity
from mainstem.parts import constant, inverse_time
from mainstem.theory import beside
from mainstem.theory.bound import Bound, Rate

EXPECTED = "expected regret, eq. (3)"
ROUNDING = 1e-6  # tolerance at a limit: a step rule may have rounded the step


def fedsea_theorem_1(
    steps: Any,
    *,
    clients: int,
    period: int,
    step: float,
    smoothness: float,
    distance: Any,
    noise: Any,
    spatial: Any,
    temporal: Any,
) -> Bound:
    r"""Convex losses, a constant step of at most min(1 / (8 L), 1 / (4 sqrt(6) L (tau - 1))).

    With :math:`d = \tau - 1` the virtual regret (Lemma 4) is at most

    .. math:: V = \frac{|x_1 - x_*|^2}{\eta} + T \Big[ \big(\tfrac{10 \eta}{M} + 8 \eta^2 L d\big) \sigma^2
              + 15 \eta^2 L d^2 \zeta^2 + (4 \eta L + 30 \eta^2 L^2 d^2) K^2 \Big]

    and Lemmas 1 and 3 add the clients' distance from their mean,

    .. math:: R_T \le V + 2 \eta^2 L d\, T (\sigma^2 + 3 d \zeta^2) + 12 \eta^2 L^2 d^2 (V + T K^2).

    >>> round(float(fedsea_theorem_1(100, clients=10, period=1, step=0.1, smoothness=1.0, distance=1.0,
    ...                              noise=1.0, spatial=5.0, temporal=0.0)), 6)
    20.0
    """
    owner = "fedsea_theorem_1"
    steps = check.step_counts(owner, "steps", steps)
    clients, period = _counts(owner, clients, period)
    smooth = check.positive(owner, "smoothness", smoothness)
    eta, limit = check.positive(owner, "step", step), fedsea_limit(smooth, period)
    if eta > limit * (1 + ROUNDING):
        wanted = f"be at most {limit:.6g} = min(1 / (8 L), 1 / (4 sqrt(6) L (period - 1)))"
        raise check.refuse(owner, "step", wanted, step)
    distance, noise, spatial, temporal = _given(owner, distance, noise, spatial, temporal)
    far, drift = period - 1, eta**2 * smooth * (period - 1)
    virtual = {
        "start": distance**2 / eta,
        "noise": steps * (10 * eta / clients + 8 * drift) * noise,
        "spatial": steps * 15 * drift * far * spatial,
        "temporal": steps * (4 * eta * smooth + 30 * drift * smooth * far) * temporal,
    }
    apart = {
        "start": 0.0,
        "noise": 2 * drift * steps * noise,
        "spatial": 6 * drift * far * steps * spatial,
        "temporal": 12 * drift * smooth * far * steps * temporal,
    }
    again = 1 + 12 * drift * smooth * far
    terms = {name: again * value + apart[name] for name, value in virtual.items()}
    return Bound("FedSEA, Theorem 1 (explicit constants)", EXPECTED, steps, terms)


def fedsea_limit(smoothness: float, period: int) -> float:
    """The largest constant step of Theorem 1."""
    return min(1 / (8 * smoothness), 1 / (4 * math.sqrt(6) * smoothness * max(period - 1, 1e-300)))


def fedsea_theorem_2(
    steps: Any,
    *,
    clients: int,
    period: int,
    shift: float,
    smoothness: float,
    curvature: float,
    distance: Any,
    noise: Any,
    spatial: Any,
    temporal: Any,
) -> Bound:
    r"""Strongly convex losses, the shifted step :math:`\eta_t = 2 / (\mu (t + t_0))`.

    The printed step has :math:`t_0 = 0` and is unstable for t below the condition number; its bound (11)
    has an error term :math:`E_{1:t_0-1}` instead. Let :math:`s_t = t + t_0`, :math:`d = \tau - 1`,
    :math:`W = (L^2/\mu)(1 + 2/s_1)` and

    .. math:: c_t = \frac{4 L}{\mu s_t} + \frac{96\, W L d^2}{\mu^2 s_t^2}.

    If :math:`c_1 \le 1/2` and :math:`2/(\mu s_1) \le 1/(4 L d)`, eq. (23) with Lemmas 2 and 5
    telescopes for every prefix. Since :math:`c_t` decreases, summation by parts gives a virtual
    regret of at most 2 B (also if the regret of single steps is negative) with

    .. math:: B = \frac{\mu t_0 |x_1 - x_*|^2}{4} + \frac{10 \sigma^2}{M \mu} \sum_t \frac{1}{s_t}
              + \frac{16 W d (\sigma^2 + 3 d \zeta^2)}{\mu^2} \sum_t \frac{1}{s_t^2} + K^2 \sum_t c_t,

    to which Lemma 1 adds, in the same way,

    .. math:: \frac{8 L d}{\mu^2} \Big[ (\sigma^2 + 3 d \zeta^2 + 6 d L K^2) \sum_t \frac{1}{s_t^2}
              + \frac{12 d L B}{s_1^2} \Big].

    >>> world = dict(clients=10, period=1, smoothness=2.0, curvature=1.0, noise=1.0)
    >>> shift = fedsea_shift(smoothness=2.0, curvature=1.0, period=1)
    >>> round(float(fedsea_theorem_2(1000, shift=shift, distance=1, spatial=1, temporal=0, **world)), 3)
    15.864
    """
    owner = "fedsea_theorem_2"
    steps = check.step_counts(owner, "steps", steps)
    clients, period = _counts(owner, clients, period)
    smooth = check.positive(owner, "smoothness", smoothness)
    curve = check.positive(owner, "curvature", curvature)
    if curve > smooth * (1 + ROUNDING):
        raise check.refuse(owner, "curvature", f"be at most the smoothness {smooth:g}", curvature)
    shift = check.at_least(owner, "shift", shift, 0)
    least = fedsea_shift(smoothness=smooth, curvature=curve, period=period)
    if 1 + shift < (1 + least) * (1 - ROUNDING):
        wanted = (
            f"be at least {least:.6g}, where 4 L / (mu s) + 96 W L (period - 1)^2 / (mu s)^2 <= 1/2"
        )
        raise check.refuse(owner, "shift", wanted, shift)
    distance, noise, spatial, temporal = _given(owner, distance, noise, spatial, temporal)
    far, first = period - 1, 1 + shift
    s = np.arange(1, np.max(steps) + 1) + shift
    once, twice = (np.cumsum(1 / s**power)[np.asarray(steps) - 1] for power in (1, 2))
    young = smooth**2 / curve * (1 + 2 / first)
    wait = 96 * young * smooth * far**2 / curve**2
    virtual = {
        "start": curve * shift * distance**2 / 4,
        "noise": noise * (10 * once / (clients * curve) + 16 * young * far * twice / curve**2),
        "spatial": 48 * young * far**2 * spatial * twice / curve**2,
        "temporal": temporal * (4 * smooth * once / curve + wait * twice),
    }
    apart = {
        "start": 0.0,
        "noise": noise * twice,
        "spatial": 3 * far * spatial * twice,
        "temporal": 6 * far * smooth * temporal * twice,
    }
    lag = 8 * smooth * far / curve**2
    again = 2 + lag * 12 * far * smooth / first**2
    terms = {name: again * value + lag * apart[name] for name, value in virtual.items()}
    return Bound("FedSEA, Theorem 2 (explicit constants)", EXPECTED, steps, terms)


def fedsea_shift(*, smoothness: float, curvature: float, period: int) -> float:
    """The smallest shift t_0 that Theorem 2 allows.

    >>> fedsea_shift(smoothness=2.0, curvature=1.0, period=1)
    15.0
    """
    owner = "fedsea_shift"
    smooth = check.positive(owner, "smoothness", smoothness)
    curve = check.positive(owner, "curvature", curvature)
    far = check.integer(owner, "period", period, least=1) - 1
    low = max(0.0, 8 * smooth / curve - 1, 8 * smooth * far / curve - 1)
    if _early(low, smooth, curve, period) <= 0.5:
        return low
    high = 2 * low + 1
    while _early(high, smooth, curve, period) > 0.5:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _early(middle, smooth, curve, period) > 0.5 else (low, middle)
    return high


def _early(shift: float, smooth: float, curve: float, period: int) -> float:
    """c_1 of Theorem 2."""
    first = 1 + shift
    young = smooth**2 / curve * (1 + 2 / first)
    return (
        4 * smooth / (curve * first)
        + 96 * young * smooth * (period - 1) ** 2 / (curve * first) ** 2
    )


def fedsea_equation_10(
    steps: Any,
    *,
    clients: int,
    period: int,
    smoothness: float,
    distance: Any,
    noise: Any,
    temporal: Any,
) -> Rate:
    r"""The bound of Theorem 1 with its best step, up to constants (eq. (10)).

    .. math:: O\big(D \sqrt{T (\sigma^2 / M + L K^2)}\big) + O(M \tau^2)
    """
    owner = "fedsea_equation_10"
    steps = check.step_counts(owner, "steps", steps)
    clients, period = _counts(owner, clients, period)
    smooth = check.positive(owner, "smoothness", smoothness)
    distance, noise, _, temporal = _given(owner, distance, noise, 0, temporal)
    terms = {
        "regret": distance * np.sqrt(steps * (noise / clients + smooth * temporal)),
        "drift": clients * period**2 * np.ones_like(steps, float),
    }
    return Rate("FedSEA, eq. (10)", EXPECTED, steps, terms)


def _counts(owner: str, clients: int, period: int) -> tuple[int, int]:
    return (
        check.integer(owner, "clients", clients, least=1),
        check.integer(owner, "period", period, least=1),
    )


def _given(owner: str, distance: Any, noise: Any, spatial: Any, temporal: Any) -> list[Any]:
    known = {"distance": distance, "noise": noise, "spatial": spatial, "temporal": temporal}
    return [check.amounts(owner, name, value, least=0) for name, value in known.items()]


# --- the steps of the theorems --------------------------------------------------------------------


def fedsea_convex(
    steps: int,
    *,
    clients: int,
    smoothness: float,
    distance: float,
    noise: float,
    period: int = 1,
    spatial: float = 0.0,
    temporal: float = 0.0,
) -> Step:
    """Sahu et al. 2026, Theorem 1: the constant step with the smallest bound."""
    check.positive("fedsea_convex", "distance", distance)
    limit = fedsea_limit(check.positive("fedsea_convex", "smoothness", smoothness), period)

    def bound(log_step: float) -> float:
        return float(
            fedsea_theorem_1(
                check.integer("fedsea_convex", "steps", steps, least=1),
                clients=clients,
                period=period,
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


def fedsea_strongly_convex(curvature: float, *, smoothness: float, period: int = 1) -> Step:
    r"""Sahu et al. 2026, Theorem 2, shifted: :math:`\eta_t = 2 / (\mu (t + t_0))`, t_0 the smallest allowed.

    The recommended step; `fedsea_printed` has t_0 = 0 and is unstable for t below the condition number.
    """
    shift = fedsea_shift(smoothness=smoothness, curvature=curvature, period=period)
    return inverse_time(curvature, shift)


def fedsea_printed(curvature: float) -> Step:
    r"""Sahu et al. 2026, Theorem 2 as printed: :math:`\eta_t = 2 / (\mu t)`."""
    return inverse_time(check.positive("fedsea_printed", "curvature", curvature))


def fedsea_period(steps: int, clients: int) -> int:
    """Sahu et al. 2026, Remark 3: the largest tau with the same rate, T^(1/4) / M^(3/4), at least 1.

    >>> fedsea_period(10**8, 10)
    17
    """
    steps = check.integer("fedsea_period", "steps", steps, least=1)
    clients = check.integer("fedsea_period", "clients", clients, least=1)
    return max(1, int(steps**0.25 / clients**0.75))


# --- the runs to which the theorems apply ---------------------------------------------------------


def of_run(run: Any, at: np.ndarray) -> beside.Beside:
    """A run's expected regret and the bound of Theorem 1 or 2, depending on its step."""
    beside.everyone_heard(run)
    beside.plain_exchange(run)
    if not run.domain.whole:
        raise MainstemError("bound: FedSEA's theorems assume that no projection acts")
    schedule = beside.schedule_of(run)
    seed = run.summary.seeds[0]
    prefix = beside.prefix_of(run, run.summary.steps, seed)
    known = heterogeneity(prefix)
    if np.isnan(known.noise).any():
        raise MainstemError("bound: the noise of these losses grows with the model: no sigma^2")
    if isinstance(schedule, Falling) and schedule.sigma > known.curvature * (1 + 1e-6):
        raise MainstemError(
            "bound: Theorem 2 is for the step 2 / (mu (t + shift)) with mu at most the curvature "
            f"{known.curvature:g} of the expected losses, not {schedule.sigma:g}"
        )
    world: dict[str, Any] = {
        "clients": run.summary.clients,
        "period": geometry.longest_period(run.algorithm.sync, run.summary.steps),
        "smoothness": known.smoothness,
    }
    found = []
    for t, best in zip(at, prefix.bests(at, expected=True).points, strict=True):
        drift, far = known.against(best)[:t], float(np.linalg.norm(best - prefix.start))
        parts = {"noise": known.noise[:t], "spatial": known.spatial[:t], "temporal": drift}
        if isinstance(schedule, float):
            means: Any = {name: float(np.mean(part)) for name, part in parts.items()}
            bound = fedsea_theorem_1(int(t), step=schedule, distance=far, **world, **means)
        else:
            most: Any = {name: float(np.max(part)) for name, part in parts.items()}
            bound = fedsea_theorem_2(
                int(t),
                shift=schedule.shift,
                curvature=schedule.sigma,
                distance=far,
                **world,
                **most,
            )
        found.append(bound)
    return beside.Beside(beside.regret_at(run, at, "expected"), _joined(found, at))


def _joined(found: Sequence[Bound], at: np.ndarray) -> Bound:
    """Joins bounds for one number of steps each into one bound for several."""
    terms = {name: np.array([float(b.terms[name]) for b in found]) for name in found[0].terms}
    return found[0]._replace(steps=at, terms=terms)


THEOREMS = (fedsea_theorem_1, fedsea_theorem_2, fedsea_equation_10)
