"""The MSD for several sizes of drift (Rizk et al. 2020, Fig. 1d)."""

from typing import Any

import numpy as np

from mainstem.papers import rizk
from mainstem.papers.evidence import Evidence, between, rising
from mainstem.papers.result import Claim, Numbers, Result
from mainstem.papers.runner import Runner

MU = 0.01
SMALL, GROWING = 1e-3, 1e-2  # the largest drifts for which the rate is constant, and the MSD grows
SATURATED = 3.0  # dB that a factor of 10 in the drift adds at most; 10 if the level were linear


def name(drift: float) -> str:
    """The name in the legend."""
    return f"$\\sigma_q^2$ = {drift:g}"


def measure(runner: Runner, drifts: tuple[float, ...], **size: int) -> Numbers:
    """Squared deviations [seeds, steps] for each drift."""
    found = {name(drift): rizk.deviation(runner, MU, drift, **size) for drift in drifts}
    return found | {"drifts": np.array([drifts])}


def plainly(numbers: Numbers, most: float = np.inf) -> Numbers:
    """The runs with at most this drift, named for a sentence."""
    drifts = [drift for drift in numbers["drifts"][0] if drift <= most]
    return {f"sigma_q^2 = {drift:g}": numbers[name(drift)] for drift in drifts}


def higher(numbers: Numbers) -> Evidence:
    """The levels rise with the drift, up to `GROWING`."""
    named = plainly(numbers, GROWING)
    found = rising({each: rizk.level(run) for each, run in named.items()})
    return Evidence(f"dB, {found.measured}", found.margins)


def saturates(numbers: Numbers) -> Evidence:
    """The increase of the level for the last factor of ten."""
    before, last = (rizk.level(numbers[name(drift)]) for drift in (0.1, 1.0))
    return between("from sigma_q^2 = 0.1 to 1: dB", last - before, -np.inf, SATURATED)


def draw(numbers: Numbers) -> Any:
    """The paper's figure."""
    found = {name(drift): numbers[name(drift)] for drift in numbers["drifts"][0]}
    return rizk.drawn(found)


RESULT = Result(
    name="dynfedavg-fig1d",
    paper=f"{rizk.PAPER}, Fig. 1d",
    about="Dynamic FedAvg's mean-square deviation with mu = 0.01, for worlds that walk faster.",
    full={"drifts": (0.0, 1e-4, 1e-3, 1e-2, 0.1, 1.0), "steps": 500, "seeds": 50},
    quick={"drifts": (0.0, 1e-4, 0.1, 1.0), "steps": 300, "seeds": 30},
    measure=measure,
    claims=(
        Claim("The MSD increases with sigma_q^2 (up to 0.01).", higher),
        Claim(
            "sigma_q^2 does not affect the convergence (within a tenth of its rate, up to 0.001).",
            lambda numbers: rizk.as_fast(plainly(numbers, SMALL)),
        ),
        Claim(
            "The same at every sigma_q^2.",
            lambda numbers: rizk.as_fast(plainly(numbers)),
            full="does not hold",
            quick="does not hold",
            why="From about 0.1 on the minimiser moves so fast that a step of 0.01 cannot follow: the MSD falls "
            "at about two thirds of the rate without drift at 0.1 and at less than half of it at 1, and ends "
            "10 dB lower, not 35.",
        ),
        Claim("For large drift the MSD saturates: only the line's direction matters.", saturates),
    ),
    draw=draw,
    minutes=3,
    chosen=(
        *rizk.CHOSEN,
        "mu = 0.01, as in the experiment before; sigma_q^2 by factors of 10: both open in the paper.",
        "T = 500. Labels are signs, so that the minimiser moves with the line's direction, which turns the "
        "slower the further the line has walked: levels under drift depend on T.",
        "The rate is the fall in dB over the first 25 steps, a quarter of 1 / mu.",
    ),
)
