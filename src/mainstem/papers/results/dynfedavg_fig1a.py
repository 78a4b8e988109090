"""The MSD of three step sizes without drift (Rizk et al. 2020, Fig. 1a)."""

import itertools
from typing import Any

import numpy as np

from mainstem.papers import rizk
from mainstem.papers.evidence import Evidence, all_of, between, rising
from mainstem.papers.result import Claim, Numbers, Result
from mainstem.papers.runner import Runner

ALLOWED = 1.0  # dB, of which second-order terms, about mu H / 2, are 0.5 at mu = 0.1
ENOUGH = 200  # mu times the steps of all seeds that resolve 1 dB: errors last about 1 / mu steps
PER_DECADE = (8.0, 12.0)  # dB


def measure(runner: Runner, horizons: dict[float, int], seeds: int) -> Numbers:
    """Squared deviations [seeds, steps] for each mu, and the level that theory predicts."""
    numbers: Numbers = {"mu": np.array([sorted(horizons)])}
    for mu in sorted(horizons):
        numbers[name(mu)] = rizk.deviation(runner, mu, steps=horizons[mu], seeds=seeds)
    numbers["small step"] = rizk.small_step(runner, seeds=seeds)
    return numbers


def name(mu: float) -> str:
    """The name in the legend."""
    return f"$\\mu$ = {mu:g}"


def settled(numbers: Numbers, relative: bool = False) -> Numbers:
    """The level in dB for each mu, from step 3 / mu on.

    If `relative`, in units of the theory's level for each seed's own stream at mu = 1: streams differ by
    several dB, whatever the step size.
    """
    units = numbers["small step"] if relative else 1.0
    return {
        f"mu = {mu:g}": rizk.decibels(rizk.late(numbers[name(mu)], round(3 / mu)) / units)
        for mu in numbers["mu"][0]
    }


def faster(numbers: Numbers) -> Evidence:
    """The fall of the MSD in dB per step early on increases with mu, over the same number of steps for all."""
    steps = round(1 / numbers["mu"].max())
    found = rising({f"mu = {mu:g}": rizk.rate(numbers[name(mu)], steps) for mu in numbers["mu"][0]})
    return Evidence(f"dB a step over the first {steps}, {found.measured}", found.margins)


def higher(numbers: Numbers) -> Evidence:
    """The settled levels increase with mu."""
    found = rising(settled(numbers))
    return Evidence(f"dB, {found.measured}", found.margins)


def per_decade(numbers: Numbers) -> Evidence:
    """The increase of the level for each factor of ten in mu, seed by seed."""
    levels = settled(numbers, relative=True).items()
    return all_of(
        *(
            between(f"from {one} to {other}: dB", b - a, *PER_DECADE)
            for (one, a), (other, b) in itertools.pairwise(levels)
        )
    )


def predicted(numbers: Numbers) -> Evidence:
    """The level minus mu / 2 * trace(H^-1 R_s), in dB, for each seed's own stream."""
    found = settled(numbers, relative=True)
    return all_of(
        *(
            between(f"mu = {mu:g}: dB above it", level - 10 * np.log10(mu), -ALLOWED, ALLOWED)
            for mu, level in zip(numbers["mu"][0], found.values(), strict=True)
            if mu * numbers[name(mu)][:, round(3 / mu) :].size >= ENOUGH
        )
    )


def draw(numbers: Numbers) -> Any:
    """The paper's figure, with the predicted levels dashed."""
    theory = {
        name(mu): float(10 * np.log10(mu * numbers["small step"].mean())) for mu in numbers["mu"][0]
    }
    return rizk.drawn({each: numbers[each] for each in theory}, theory)


RESULT = Result(
    name="dynfedavg-fig1a",
    paper=f"{rizk.PAPER}, Fig. 1a",
    about="Dynamic FedAvg's mean-square deviation without drift, for step sizes a factor of 10 apart.",
    full={"horizons": {0.001: 4500, 0.01: 1000, 0.1: 400}, "seeds": 50},
    quick={"horizons": {0.01: 700, 0.1: 400}, "seeds": 30},
    measure=measure,
    claims=(
        Claim("As mu increases, the convergence becomes faster.", faster),
        Claim("As mu increases, the MSD increases.", higher),
        Claim("The MSD is O(mu): about 10 dB for each factor of 10 (Theorem 1).", per_decade),
        Claim(
            "A small step settles at mu/2 trace(H^-1 R_s), within 1 dB: uneven epochs add up "
            "to one step of size mu on the aggregate risk.",
            predicted,
        ),
    ),
    draw=draw,
    minutes=5,
    chosen=(
        *rizk.CHOSEN,
        "mu = 0.001, 0.01, 0.1: the paper varies mu by factors of 10 and does not say from where.",
        "Each mu has its horizon; levels are from step 3 / mu on, and set beside theory where there are enough "
        "steps after it to tell 1 dB (mu = 0.01 and 0.1; 0.1 alone in the quick size).",
    ),
)
