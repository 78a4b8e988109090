"""The cost of spatial and temporal heterogeneity for FedSEA (Sahu et al. 2026, Theorem 1 and Remark 5)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import mainstem as ms
from mainstem.papers import sahu
from mainstem.papers.evidence import (
    Evidence,
    all_of,
    between,
    exponent,
    falling,
    near,
    shown,
)
from mainstem.papers.result import Claim, Numbers, Result
from mainstem.papers.runner import Runner
from mainstem.report import figures
from mainstem.theory.fedsea import fedsea_limit

CLIENTS = 10
PLAIN = "ζ² = K² = 0"
PERIODS = (1, 4, 16)
LARGEST = fedsea_limit(1.0, max(PERIODS))  # the largest step that Theorem 1 allows for every tau
SPATIAL = {tau: f"ζ² = 1, τ = {tau}" for tau in PERIODS}
TEMPORAL = {drift: f"K² = 1, {drift} drift" for drift in ("alternating", "slow")}


def measure(runner: Runner, *, shares: Sequence[float], steps: int, seeds: int) -> Numbers:
    """Excess regret [seeds, step sizes] over that of the same seeds without heterogeneity.

    The step sizes are `shares` of the largest.
    """
    sizes = LARGEST * np.array(shares)

    def cells(period: int = 1, **world: Any) -> np.ndarray:
        stream = sahu.world(CLIENTS, **world)
        algorithms = [ms.fedsea(float(step), period=period) for step in sizes]
        found = [sahu.regret(runner, each, stream, [steps], seeds=seeds) for each in algorithms]
        return np.concatenate(found, axis=1)

    plain = {tau: cells(tau) for tau in PERIODS}
    numbers = {"sizes": sizes, PLAIN: plain[1]}
    for tau, name in SPATIAL.items():
        numbers[name] = cells(tau, spatial=1.0) - plain[tau]
    for drift, name in TEMPORAL.items():
        numbers[name] = cells(temporal=1.0, drift=drift) - plain[1]
    return numbers


def nothing(numbers: Numbers) -> Evidence:
    """The excess at tau = 1, as a share of the regret, is zero up to rounding."""
    share = numbers[SPATIAL[1]] / numbers[PLAIN]
    most = share[:, np.abs(share).mean(axis=0).argmax()]
    found = near({"excess": most, "none": 0 * most}, within=1e-6)
    text = f"excess / regret at τ = 1: at most {np.abs(share).max():.0e} in any seed, allowed 1e-06"
    return found._replace(measured=text)


def second_order(numbers: Numbers) -> Evidence:
    """The exponents of eta for tau above 1 are near 2."""
    return all_of(*(order(numbers, SPATIAL[tau], 1.5, 2.5) for tau in PERIODS[1:]))


def order(numbers: Numbers, name: str, low: float, high: float) -> Evidence:
    """The exponent of eta in the excess."""
    return between(
        f"{name}: exponent of η", exponent(numbers["sizes"].tolist(), numbers[name]), low, high
    )


def quadratic(numbers: Numbers) -> Evidence:
    """The exponent of tau - 1 at the largest step size."""
    values = np.stack([numbers[SPATIAL[tau]][:, -1] for tau in PERIODS[1:]], axis=1)
    found = exponent([tau - 1 for tau in PERIODS[1:]], values)
    return between("exponent of τ - 1", found, 1.5, 2.5)


def temporal_costs_more(numbers: Numbers) -> Evidence:
    """K^2 = 1 costs more than zeta^2 = 1 with the longest tau, at every step size."""
    named = TEMPORAL["alternating"], SPATIAL[PERIODS[-1]]
    return all_of(
        *(
            falling({f"{name} at η = {step:.2g}": numbers[name][:, n] for name in named})
            for n, step in enumerate(numbers["sizes"])
        )
    )


def negative(numbers: Numbers) -> Evidence:
    """The excess with a slow drift is negative at every step size, and the complete regret at the largest."""
    excess = numbers[TEMPORAL["slow"]]
    whole = excess + numbers[PLAIN]
    text = "; ".join(
        f"η = {size:.2g}: excess {shown(excess[:, n])}, regret {shown(whole[:, n])}"
        for n, size in enumerate(numbers["sizes"])
    )
    return Evidence(f"slow drift, {text}", (*(-excess.T), -whole[:, -1]))


def draw(numbers: Numbers) -> Any:
    """Excess regret against the step size, and the regret with and without drift on a linear scale."""
    sizes = numbers["sizes"]
    alternating, slow = TEMPORAL["alternating"], TEMPORAL["slow"]
    drawn = {name: numbers[name] for name in (*list(SPATIAL.values())[1:], alternating)}
    moving = {name: numbers[name] + numbers[PLAIN] for name in (alternating, slow)}
    titled = {"excess over the same seeds": drawn, "regret": {**moving, PLAIN: numbers[PLAIN]}}
    label = "excess of $E[R_T]$ over $\\zeta^2 = K^2 = 0$"
    figure = figures.panels(
        titled, label, steps=sizes, log="xy", across="step size $\\eta$", marked=True
    )
    excess, regret = figure.axes
    for power, name in ((1, alternating), (2, SPATIAL[PERIODS[-1]])):
        line = numbers[name].mean(axis=0)[-1] * (sizes / sizes[-1]) ** power
        text = f"slope {power}"
        excess.plot(sizes, line, color="#999999", linestyle=":" if power == 1 else "--", label=text)
    low, _ = excess.get_ylim()
    excess.set_ylim(bottom=low / 30)
    regret.set_yscale("linear")
    regret.set_ylabel("expected regret $E[R_T]$, eq. (3)")
    return sahu.tidy(figure, ticks={0: sizes, 1: sizes})


RESULT = Result(
    name="fedsea-heterogeneity",
    paper=f"{sahu.PAPER}, Theorem 1 and Remark 5",
    about="What spatial and temporal heterogeneity add to FedSEA's expected regret, against the step size.",
    full={"shares": (0.25, 0.5, 1.0), "steps": 8000, "seeds": 60},
    quick={"shares": (0.25, 1.0), "steps": 2000, "seeds": 40},
    measure=measure,
    claims=(
        Claim("The drift due to spatial heterogeneity is zero at tau = 1.", nothing),
        Claim(
            "The drift due to spatial heterogeneity scales with eta^2, and is of higher order.",
            second_order,
        ),
        Claim("The drift terms grow quadratically with the synchronization period tau.", quadratic),
        Claim(
            "The dominant regret term depends on the temporal heterogeneity: it is of first order in eta.",
            lambda numbers: order(numbers, TEMPORAL["alternating"], 0.5, 1.5),
        ),
        Claim(
            "Temporal shifts in the data distribution have a greater effect than the spatial variations.",
            temporal_costs_more,
        ),
        Claim(
            "Not the paper's words: a slow drift of the same K^2 costs nothing. The clients follow it, and regret "
            "against a fixed point becomes negative.",
            negative,
        ),
    ),
    draw=draw,
    minutes=1.5,
    chosen=(
        *sahu.CHOSEN,
        "M = 10; zeta^2 = 1 or K^2 = 1 and the other 0; tau = 1, 4, 16.",
        "The steps are the largest that Theorem 1 allows for tau = 16, and a half and a fourth of it.",
        "Clients differ in their targets, not in their second derivatives: zeta^2 is then the same at every "
        "model, and costs consensus only.",
        "Whole periods of the slow drift (1,000 steps), so that the best fixed point is its centre.",
    ),
)
