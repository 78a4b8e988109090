"""The MSD for several differences between clients (the paper's agents; Rizk et al. 2020, Fig. 1c)."""

from typing import Any

import numpy as np

from mainstem.papers import rizk
from mainstem.papers.evidence import Evidence, rising
from mainstem.papers.result import Claim, Numbers, Result
from mainstem.papers.runner import Runner

MU = 0.01


def name(spread: float) -> str:
    """The name in the legend."""
    return f"$\\sigma_c^2$ = {spread:g}"


def measure(runner: Runner, spreads: tuple[float, ...], **size: int) -> Numbers:
    """Squared deviations [seeds, steps] for each spread."""
    found = {name(spread): rizk.deviation(runner, MU, spread=spread, **size) for spread in spreads}
    return found | {"spreads": np.array([spreads])}


def plainly(numbers: Numbers) -> Numbers:
    """The runs, named for a sentence."""
    return {f"sigma_c^2 = {spread:g}": numbers[name(spread)] for spread in numbers["spreads"][0]}


def higher(numbers: Numbers) -> Evidence:
    """The settled levels increase with the spread."""
    found = rising({each: rizk.level(run) for each, run in plainly(numbers).items()})
    return Evidence(f"dB, {found.measured}", found.margins)


def draw(numbers: Numbers) -> Any:
    """The paper's figure."""
    return rizk.drawn({name(spread): numbers[name(spread)] for spread in numbers["spreads"][0]})


RESULT = Result(
    name="dynfedavg-fig1c",
    paper=f"{rizk.PAPER}, Fig. 1c",
    about="Dynamic FedAvg's mean-square deviation without drift, mu = 0.01, for agents further apart.",
    full={"spreads": (0.01, 0.1, 1.0), "steps": 500, "seeds": 50},
    quick={"spreads": (0.01, 1.0), "steps": 400, "seeds": 30},
    measure=measure,
    claims=(
        Claim("The MSD increases with sigma_c^2.", higher),
        Claim(
            "The convergence rate is not affected (within a tenth).",
            lambda numbers: rizk.as_fast(plainly(numbers)),
        ),
    ),
    draw=draw,
    minutes=1.5,
    chosen=(
        *rizk.CHOSEN,
        "sigma_c^2 = 0.01, 0.1, 1: a factor of 10 to either side of the 0.1 of the other experiments.",
        "The rate is the fall in dB over the first 25 steps, a quarter of 1 / mu.",
    ),
)
