"""The final MSD over the step size, with drift (Rizk et al. 2020, Fig. 1b)."""

from typing import Any

import numpy as np

from mainstem.papers import rizk
from mainstem.papers.evidence import Evidence, all_of, rising
from mainstem.papers.result import Claim, Numbers, Result
from mainstem.papers.runner import Runner
from mainstem.report import figures

DRIFT = 0.01


def name(rho: float) -> str:
    """The name in the legend."""
    return f"$\\rho$ = {rho:g}"


def measure(
    runner: Runner, grids: dict[float, tuple[float, ...]], steps: int, seeds: int
) -> Numbers:
    """The mean squared deviation at the end [seeds, step sizes] for each rho."""
    numbers: Numbers = {}
    for rho, grid in grids.items():
        runs = [rizk.deviation(runner, mu, DRIFT, rho=rho, steps=steps, seeds=seeds) for mu in grid]
        numbers[f"mu, {name(rho)}"] = np.array([grid])
        numbers[name(rho)] = np.stack([rizk.late(run) for run in runs], axis=1)
    return numbers


def best_at(numbers: Numbers, rho: float, best: float) -> Evidence:
    """Of step sizes a factor of ten apart, this one is the best, and the MSD rises to either side."""
    grid, levels = numbers[f"mu, {name(rho)}"][0], rizk.decibels(numbers[name(rho)])
    named = {
        f"mu = {mu:g}": levels[:, n]
        for n, mu in enumerate(grid)
        if np.log10(mu / best).round(6) % 1 == 0
    }
    middle = list(named).index(f"mu = {best:g}")
    left, right = list(named)[middle::-1], list(named)[middle:]
    found = all_of(*(rising({each: named[each] for each in side}) for side in (left, right)))
    return Evidence(f"dB, {found.measured}", found.margins)


def draw(numbers: Numbers) -> Any:
    """The paper's figure, for each rho."""
    rhos = [each for each in numbers if not each.startswith("mu")]
    return figures.curves(
        {each: rizk.decibels(numbers[each]) for each in rhos},
        "final MSD (dB)",
        steps={each: numbers[f"mu, {each}"][0] for each in rhos},
        log="x",
        across="step size $\\mu$",
        marked=True,
    )


RESULT = Result(
    name="dynfedavg-fig1b",
    paper=f"{rizk.PAPER}, Fig. 1b",
    about="Dynamic FedAvg's final mean-square deviation over the step size, with drift 0.01.",
    full={
        "grids": {1.0: (0.01, 0.03, 0.1, 0.3, 1.0), 0.1: (0.1, 0.3, 1.0, 3.0, 10.0)},
        "steps": 400,
        "seeds": 50,
    },
    quick={"grids": {1.0: (0.01, 0.1, 1.0)}, "steps": 250, "seeds": 40},
    measure=measure,
    claims=(
        Claim(
            "There is an optimal step size mu = 0.1 that achieves the best MSD (of factors of 10; rho = 1).",
            lambda numbers: best_at(numbers, 1.0, 0.1),
        ),
        Claim(
            "The best step depends on rho: it is 1 at rho = 0.1.",
            lambda numbers: best_at(numbers, 0.1, 1.0),
            quick=None,
        ),
    ),
    draw=draw,
    minutes=4,
    chosen=(
        *rizk.CHOSEN,
        "Claims are on steps a factor of 10 apart, as the paper varies them; the figure has those between. "
        "On a finer grid the best step at rho = 1 lies nearer to 0.2.",
        "T = 400, and the final MSD is that of the last two fifths. Labels are signs, so that the minimiser "
        "moves with the line's direction, which turns the slower the further the line has walked: the final "
        "MSD depends on T.",
    ),
)
