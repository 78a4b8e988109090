"""Regret against the number of steps T, by the number of participating clients (Mitra et al. 2021, Fig. 1,
right)."""

from typing import Any

from mainstem.papers import mitra
from mainstem.papers.result import Numbers, Result
from mainstem.papers.runner import Runner
from mainstem.report import figures

PERIOD, HEARD = 20, (20, 10, 5, 2)
NAMES = tuple(f"K = {heard}" for heard in HEARD)


def measure(runner: Runner, **size: Any) -> Numbers:
    """Regret [seeds, steps] for each number of participating clients."""
    runs = (runner.run(mitra.algorithm(PERIOD, heard), *mitra.world(), **size) for heard in HEARD)
    return {name: mitra.regrets(run) for name, run in zip(NAMES, runs, strict=True)}


def draw(numbers: Numbers) -> Any:
    """The paper's figure."""
    return figures.curves(numbers, "regret $R_T$ (collective)", across="time horizon T", log="x")


RESULT = Result(
    name="fedomd-fig1-right",
    paper="Mitra, Hassani and Pappas 2021, Fig. 1 (right)",
    about="FedOMD's regret against the horizon when K of 20 clients are heard every 20 steps.",
    full={"steps": 2000, "seeds": 200},
    quick={"steps": 1000, "seeds": 100},
    measure=measure,
    claims=mitra.claims("Smaller K leads to larger regret.", NAMES),
    draw=draw,
    minutes=0.5,
    chosen=mitra.CHOSEN,
)
