"""Theorems on FedOGD, OFedAvg and OFedIQ (Kwon, Park and Hong 2023).

Losses are convex (Assumption 1) and `smoothness`-smooth for every sample (2); the quantiser is
unbiased with variance at most `rounding` |u|^2 (3). Regret is eq. (3): summed over the clients, in
expectation over participation and rounding. `distance` is |w_1 - w*| (the paper starts at 0),
`variance` is sigma_diff^2 of Definition 1, `rate` p (or p_k per client), `period` L.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from mainstem import check
from mainstem.base import Step
from mainstem.errors import MainstemError
from mainstem.measure import constants
from mainstem.parts import constant, quantiser
from mainstem.theory import beside
from mainstem.theory.bound import SUMMED, Bound

BELOW = 0.999  # share of a limit, which the step must be strictly below

REGRET = f"regret {SUMMED}, eq. (3)"


def ofediq_theorem_1(
    steps: Any,
    *,
    clients: int,
    rate: Any,
    step: float,
    smoothness: float,
    distance: Any,
    variance: Any,
) -> Bound:
    r"""OFedAvg with a step below p_min / (2 beta); FedOGD at rate 1.

    .. math:: \frac{K |w_1 - w_*|^2}{2 \eta} + \frac{\eta K T \sigma_{diff}^2}{p_{min}}

    >>> float(ofediq_theorem_1(100, clients=10, rate=0.5, step=0.1, smoothness=1.0, distance=1.0,
    ...                        variance=0.2))
    90.0
    """
    owner = "ofediq_theorem_1"
    steps, clients, rates = _who(owner, steps, clients, rate)
    smooth = check.positive(owner, "smoothness", smoothness)
    eta, limit = check.positive(owner, "step", step), ofedavg_limit(rates.min(), smooth)
    if eta >= limit:
        wanted = f"be below {limit:.6g} = rate_min / (2 smoothness)"
        raise check.refuse(owner, "step", wanted, step)
    distance, variance = _measured(owner, distance, variance)
    terms = {
        "start": clients * distance**2 / (2 * eta),
        "variance": eta * clients * steps * variance / rates.min(),
    }
    return Bound("OFedIQ paper, Theorem 1", REGRET, steps, terms)


def ofedavg_limit(rate: float, smoothness: float) -> float:
    """The limit of Theorem 1: steps must be strictly below it."""
    return rate / (2 * smoothness)


def ofediq_theorem_2(
    steps: Any,
    *,
    clients: int,
    rate: Any,
    period: int,
    step: float,
    smoothness: float,
    distance: Any,
    variance: Any,
    rounding: float,
) -> Bound:
    r"""OFedIQ with a step below :math:`p_{min} / (4 \beta L R)`, for T a multiple of L.

    With :math:`R = 1 + \sigma_q^2 (p_{sum} - p_{min} + 1) / K`,

    .. math:: \frac{K |w_1 - w_*|^2}{2 \eta} + \frac{2 \eta L K T \sigma_{diff}^2}{p_{min}} R
              + 3 \beta \eta^2 L (L - 1) K T \sigma_{diff}^2.

    The printed condition lacks the L, without which the theorem fails for L > 1; eq. (40) of the
    proof needs it.

    >>> float(ofediq_theorem_2(100, clients=10, rate=1.0, period=1, step=0.1, smoothness=1.0,
    ...                        distance=1.0, variance=0.2, rounding=0.5))
    110.0
    """
    owner = "ofediq_theorem_2"
    steps, clients, rates = _who(owner, steps, clients, rate)
    period = check.integer(owner, "period", period, least=1)
    if np.any(np.asarray(steps) % period):
        raise check.refuse(owner, "steps", f"be a multiple of the period {period}", steps)
    smooth = check.positive(owner, "smoothness", smoothness)
    rounding = check.at_least(owner, "rounding", rounding, 0)
    spread = noise_factor(rates, clients, rounding)
    eta, limit = check.positive(owner, "step", step), rates.min() / (4 * smooth * period * spread)
    if eta >= limit:
        wanted = (
            f"be below {limit:.6g} = rate_min / (4 smoothness period "
            "(1 + rounding (rate_sum - rate_min + 1) / clients))"
        )
        raise check.refuse(owner, "step", wanted, step)
    distance, variance = _measured(owner, distance, variance)
    terms = {
        "start": clients * distance**2 / (2 * eta),
        "variance": 2 * eta * period * clients * steps * variance / rates.min() * spread,
        "period": 3 * smooth * eta**2 * period * (period - 1) * clients * steps * variance,
    }
    return Bound("OFedIQ paper, Theorem 2", REGRET, steps, terms)


def noise_factor(rates: np.ndarray, clients: int, rounding: float) -> float:
    """R = 1 + sigma_q^2 (p_sum - p_min + 1) / K."""
    heard = np.broadcast_to(rates, clients).sum()
    return float(1 + rounding * (heard - rates.min() + 1) / clients)


def rounding_variance(parameters: int, levels: int, blocks: int) -> float:
    """sigma_q^2 of Definition 2: the quantiser's variance is at most this times the squared norm.

    >>> rounding_variance(100, levels=1, blocks=1)
    10.0
    """
    owner = "rounding_variance"
    parameters = check.integer(owner, "parameters", parameters, least=1)
    check.integer(owner, "levels", levels, least=1)
    check.integer(owner, "blocks", blocks, 1, parameters)
    return float(quantiser(levels, blocks).variance(parameters) or 0.0)


def ofediq_alpha(
    *,
    clients: int,
    rate: float,
    period: int = 1,
    levels: int | None = None,
    blocks: int = 1,
    parameters: int | None = None,
) -> float:
    r"""The alpha of Table 1: :math:`\sqrt{\alpha |w_*|^2 K^2 \sigma_{diff}^2 T}` bounds regret with the best step.

    It is 2 for FedOGD, 2 / p for OFedAvg (without `levels`, `period` 1), and for OFedIQ

    .. math:: \frac{4 L}{p} \Big( \frac{3 p^2 (L - 1)}{8} + 1 + \sqrt{\tfrac{D}{s^2 b}} (p + \tfrac1K) \Big).

    The paper's "4.536 against 20", for its planned parameters at a tenth of the traffic, has the
    prefactor 2 of eq. (15) instead of the table's 4. The table's 4 gives

    >>> round(ofediq_alpha(clients=10**9, rate=0.51507, levels=17, blocks=1134, parameters=34826), 2)
    9.07
    """
    owner = "ofediq_alpha"
    share = _square_root(owner, levels, blocks, parameters, whole=False)
    return _alpha(owner, clients, rate, period, share)


def ofediq_corollary_1(
    steps: Any,
    *,
    clients: int,
    rate: float,
    smoothness: float,
    distance: Any,
    variance: Any,
    period: int = 1,
    levels: int | None = None,
    blocks: int = 1,
    parameters: int | None = None,
) -> Bound:
    r"""The bound with its best step (`corollary_step`): :math:`\sqrt{\alpha |w_1 - w_*|^2 K^2 \sigma_{diff}^2 T}`.

    If blocks do not divide the parameters, alpha has ceil(D / b) instead of Table 1's D / b. The best
    step must also satisfy the condition of Theorem 1 or 2; an error otherwise, because there are too few
    steps for it.
    """
    owner = "ofediq_corollary_1"
    steps = check.step_counts(owner, "steps", steps)
    share = _square_root(owner, levels, blocks, parameters, whole=True)
    alpha = _alpha(owner, clients, rate, period, share)
    distance, variance = _measured(owner, distance, variance)
    eta = corollary_step(np.min(steps), alpha=alpha, distance=distance, variance=variance)
    smooth = check.positive(owner, "smoothness", smoothness)
    if share is None and period == 1:
        limit = ofedavg_limit(rate, smooth)
    else:
        limit = ofediq_limit(rate, smooth, period, clients, share or 0.0)
    if np.any(np.asarray(eta) >= limit):
        wanted = f"be so many that the best step {float(np.max(eta)):.6g} is below {limit:.6g}"
        raise check.refuse(owner, "steps", wanted, steps)
    regret = clients * distance * np.sqrt(alpha * variance * steps)
    return Bound("OFedIQ paper, Corollary 1", REGRET, steps, {"regret": regret})


def corollary_step(steps: Any, *, alpha: float, distance: Any, variance: Any) -> Any:
    r"""The best step, which gives alpha: :math:`\sqrt{|w_1 - w_*|^2 / (\alpha \sigma_{diff}^2 T)}`.

    (The printed step of OFedIQ counts the 1 in its C twice.)
    """
    return distance / np.sqrt(alpha * variance * steps)


def ofediq_limit(
    rate: float, smoothness: float, period: int, clients: int, rounding: float
) -> float:
    """The limit of Theorem 2 for one rate: steps must be strictly below it."""
    spread = noise_factor(np.asarray(rate), clients, rounding)
    return rate / (4 * smoothness * period * spread)


def ofediq_equation_11(steps: Any, *, clients: int, distance: float, variance: float) -> Any:
    r"""The excess of FedOGD's bound on the mean loss over that of centralised gradient descent.

    .. math:: \Delta_{F-C} \le (1 - 1 / \sqrt K) \sqrt{2 |w_*|^2 \sigma_{diff}^2 / T}

    It is a difference of two upper bounds, so a comparison and not a guarantee.
    """
    owner = "ofediq_equation_11"
    steps = check.step_counts(owner, "steps", steps)
    clients = check.integer(owner, "clients", clients, least=1)
    distance, variance = _measured(owner, distance, variance)
    return (1 - 1 / math.sqrt(clients)) * distance * np.sqrt(2 * variance / steps)


class Comparison(NamedTuple):
    """Two algorithms with the same traffic, by the alpha of their bounds (smaller is better)."""

    one: float
    other: float

    @property
    def ratio(self) -> float:
        """The first alpha divided by the second."""
        return self.one / self.other


def ofediq_section_4_2_1(
    *,
    clients: int,
    rate: float,
    period: int,
    levels: int | None = None,
    blocks: int = 1,
    parameters: int | None = None,
) -> Comparison:
    """Uploads at every L-th step with rate p (`one`) against every step with rate p / L (`other`).

    >>> ofediq_section_4_2_1(clients=100, rate=1.0, period=100).ratio
    38.125
    """
    owner = "ofediq_section_4_2_1"
    share = _square_root(owner, levels, blocks, parameters, whole=False) or 0.0
    return Comparison(
        _alpha(owner, clients, rate, period, share), _alpha(owner, clients, rate / period, 1, share)
    )


def ofediq_equation_15(rate: float) -> Comparison:
    r"""Plain uploads with rate p (`one`, 2 / p) against quantised uploads with a higher rate (`other`).

    OFedIQ(1, p', s = ceil(40 p), b = D / 100) has the same traffic with p' of eq. (14), and

    .. math:: \alpha = \frac{2}{p'} \Big( 1 + \frac{10}{s} p' \Big) < \frac{1.357}{p}

    for many clients (with the table's prefactor 4, twice that).

    >>> comparison = ofediq_equation_15(0.1)
    >>> comparison.one, round(comparison.other, 4)
    (20.0, 7.2762)
    """
    rate = _rate("ofediq_equation_15", rate)
    levels = math.ceil(40 * rate)
    often = 32 * rate / (1.32 + math.log2(1 + levels))
    return Comparison(2 / rate, 2 / often * (1 + 10 / levels * often))


def _alpha(owner: str, clients: int, rate: float, period: int, share: float | None) -> float:
    """The alpha of Table 1; `share` is the quantiser's sqrt(D / (s^2 b)), None without a quantiser."""
    clients = check.integer(owner, "clients", clients, least=1)
    rate, period = _rate(owner, rate), check.integer(owner, "period", period, least=1)
    if share is None and period == 1:
        return 2 / rate
    periodic = 3 * rate**2 * (period - 1) / 8
    return 4 * period / rate * (periodic + 1 + (share or 0.0) * (rate + 1 / clients))


def _square_root(
    owner: str, levels: int | None, blocks: int, parameters: int | None, whole: bool
) -> float | None:
    if levels is None:
        return None
    levels = check.integer(owner, "levels", levels, least=1)
    parameters = check.integer(owner, "parameters", parameters, least=1)
    blocks = check.integer(owner, "blocks", blocks, least=1, most=parameters)
    block = math.ceil(parameters / blocks) if whole else parameters / blocks
    return math.sqrt(block) / levels


def _rate(owner: str, rate: float) -> float:
    rates = check.rates(owner, "rate", rate)
    if rates.ndim:
        raise check.refuse(owner, "rate", "be one number for all clients", rate)
    return float(rates)


def _who(owner: str, steps: Any, clients: int, rate: Any) -> tuple[Any, int, np.ndarray]:
    clients = check.integer(owner, "clients", clients, least=1)
    rates = check.rates(owner, "rate", rate)
    if rates.ndim and len(rates) != clients:
        raise check.refuse(owner, "rate", f"be one number or {clients} of them", rate)
    return check.step_counts(owner, "steps", steps), clients, rates


def _measured(owner: str, distance: Any, variance: Any) -> tuple[Any, Any]:
    return (
        check.amounts(owner, "distance", distance, least=0),
        check.amounts(owner, "variance", variance, least=0),
    )


# --- the step of Corollary 1 ----------------------------------------------------------------------


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
    """Kwon et al. 2023, Corollary 1: the best step, limited by the condition of Theorem 1 or 2.

    FedOGD has rate 1, OFedAvg a `rate`, OFedIQ the other parameters too.
    """
    owner = "ofediq_convex"
    smooth = check.positive(owner, "smoothness", smoothness)
    distance = check.positive(owner, "distance", distance)
    variance = check.positive(owner, "variance", variance)
    alpha = ofediq_alpha(
        clients=clients,
        rate=rate,
        period=period,
        levels=levels,
        blocks=blocks,
        parameters=parameters,
    )
    steps = check.integer(owner, "steps", steps, least=1)
    best = float(corollary_step(steps, alpha=alpha, distance=distance, variance=variance))
    if levels is None and period == 1:
        limit = ofedavg_limit(rate, smooth)
    else:
        rounded = 0.0 if levels is None else rounding_variance(parameters, levels, blocks)  # type: ignore[arg-type]
        limit = ofediq_limit(rate, smooth, period, clients, rounded)
    return constant(min(best, BELOW * limit))


# --- the runs to which the theorems apply ---------------------------------------------------------


def of_run(run: Any, at: np.ndarray) -> beside.Beside:
    """A run's global regret, summed over the clients, and the bound of Theorem 1 or 2."""
    beside.summed_up(run)
    beside.instant_links(run)
    beside.broadcast_as_it_is(run)
    algorithm, clients = run.algorithm, run.summary.clients
    period, step = algorithm.sync.period, beside.constant_of(run)
    rates = algorithm.participation.chance
    if rates is None:
        raise MainstemError("bound: the theorem is for clients that toss a coin each")
    rounding = algorithm.codec.variance(run.summary.parameters)
    irregular = period is None or algorithm.sync.offset != 0
    if irregular or rounding is None or not algorithm.codec.unbiased:
        raise MainstemError("bound: the theorem wants a regular sync and an unbiased codec")

    def of(seed: int) -> Bound:
        prefix = beside.prefix_of(run, at[-1], seed)
        smooth = constants.smoothness(prefix)
        if smooth.how == "at least":
            raise MainstemError(
                "bound: the theorems are for convex losses of known smoothness: declare it with "
                "custom(..., smooth=...)"
            )
        known = {
            "clients": clients,
            "rate": rates,
            "step": step,
            "smoothness": float(smooth),
        }
        theorem = ofediq_theorem_1
        if rounding != 0 or period != 1:
            theorem = functools.partial(ofediq_theorem_2, period=period, rounding=rounding)
        theorem(at, distance=0.0, variance=0.0, **known)  # its conditions: the rest takes long
        far = np.linalg.norm(prefix.bests(at).points - prefix.start, axis=1)
        return theorem(at, distance=far, variance=constants.variances(prefix, at), **known)

    bound = beside.averaged(run, of)
    return beside.Beside(clients * beside.regret_at(run, at, "global"), bound)


THEOREMS = (
    ofediq_theorem_1,
    ofediq_theorem_2,
    ofediq_corollary_1,
    ofediq_alpha,
    ofediq_equation_11,
    ofediq_section_4_2_1,
    ofediq_equation_15,
)
