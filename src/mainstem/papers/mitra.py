"""FedOMD's experiment (Mitra, Hassani and Pappas 2021, Section VII).

Twenty clients on [-3, 3], a ~ N(2, 5), loss (x - a)^2 / 2 at even steps and (x + a)^2 / 2 at odd ones, step
1 / t (that is, 2 / (sigma t)), regret against the best point of each prefix.
"""

import numpy as np

import mainstem as ms
from mainstem import parts, theory
from mainstem.base import Algorithm, Problem, Stream
from mainstem.papers.evidence import Evidence, all_of, logarithmic, rising
from mainstem.papers.result import Claim, Numbers
from mainstem.run import Run

CLIENTS, LOW, HIGH, CURVATURE = 20, -3.0, 3.0, 1.0
FIRST = 20  # the shortest prefix of a fit: the first few steps dominate shorter ones
CHOSEN = (
    "T = 2,000 and 200 seeds: the paper names neither.",
    "The fits are over prefixes of at least 20 steps.",
)


def algorithm(period: int, heard: int = CLIENTS) -> Algorithm:
    """FedOMD in which `heard` clients participate in a sync every `period` steps."""
    return ms.fedomd(
        theory.fedomd_strongly_convex(CURVATURE),
        mirror=parts.euclidean(parts.box(LOW, HIGH)),
        sync=parts.every(period),
        participation=parts.everyone() if heard == CLIENTS else parts.exactly(heard),
    )


def world() -> tuple[Problem, Stream]:
    """The problem, and the stream of its losses."""
    problem = ms.problems.quadratic(dimension=1, low=LOW, high=HIGH)
    return problem, ms.streams.alternating(CLIENTS)


def regrets(run: Run) -> np.ndarray:
    """Collective regret [seeds, steps], at each prefix against the best point of that prefix."""
    return np.atleast_2d(run.regret("all").values)


def claims(effect: str, names: tuple[str, ...]) -> tuple[Claim, Claim]:
    """The paper's claims about a figure: the last regret rises with `names`, and all grow like log T."""
    return (
        Claim(effect, lambda numbers: rising({name: numbers[name][:, -1] for name in names})),
        Claim("R_T scales logarithmically with T.", lambda numbers: _like_log(numbers, names)),
    )


def _like_log(numbers: Numbers, names: tuple[str, ...]) -> Evidence:
    """All these curves grow like log T."""
    at = np.arange(FIRST, numbers[names[0]].shape[1] + 1)
    return all_of(*(logarithmic(name, at, numbers[name][:, FIRST - 1 :]) for name in names))
