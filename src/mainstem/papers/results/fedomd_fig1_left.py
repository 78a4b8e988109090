"""Regret against the number of steps T, for several communication periods (Mitra et al. 2021, Fig. 1, left)."""

from typing import Any

import numpy as np

from mainstem.papers import mitra
from mainstem.papers.evidence import Evidence
from mainstem.papers.result import Claim, Numbers, Result
from mainstem.papers.runner import Runner
from mainstem.report import figures

PERIODS = (1, 5, 20, 50)
NAMES = tuple(f"tau = {period}" for period in PERIODS)


def measure(runner: Runner, **size: Any) -> Numbers:
    """Regret [seeds, steps] for each period, and Theorem 2's bound [steps]."""
    numbers = {}
    for name, period in zip(NAMES, PERIODS, strict=True):
        run = runner.run(mitra.algorithm(period), *mitra.world(), **size)
        numbers[name] = mitra.regrets(run)
        numbers[f"bound, {name}"] = np.asarray(run.bound(range(1, size["steps"] + 1)).value)
    return numbers


def bounded(numbers: Numbers) -> Evidence:
    """The largest share of the bound that any prefix of any seed reaches, for each period."""
    text, margins = [], []
    for name in NAMES:
        regret, bound = numbers[name], numbers[f"bound, {name}"]
        most = float(np.max(regret / bound))
        times = bound[-1] / regret[:, -1].mean()
        text.append(
            f"{name}: regret at most {most:.2g} of it, the bound {times:.3g} times that at T"
        )
        margins.append(np.array([1 - most]))
    return Evidence("; ".join(text), tuple(margins))


def draw(numbers: Numbers) -> Any:
    """The paper's figure, and beside it the theorem's bound."""
    named = {name: numbers[name] for name in NAMES}
    titled = {"measured": named, "and the bound of Theorem 2, dashed": named}
    figure = figures.panels(titled, "regret $R_T$ (collective)", across="time horizon T", log="x")
    beside = figure.axes[1]
    for name, line in zip(NAMES, list(beside.lines), strict=True):
        bound = numbers[f"bound, {name}"]
        beside.plot(line.get_xdata(), bound, "--", color=line.get_color(), linewidth=1.0)
    beside.set_yscale("log")
    return figure


RESULT = Result(
    name="fedomd-fig1-left",
    paper="Mitra, Hassani and Pappas 2021, Fig. 1 (left)",
    about="FedOMD's regret against the horizon for communication periods of 1 to 50 steps.",
    full={"steps": 2000, "seeds": 200},
    quick={"steps": 1000, "seeds": 100},
    measure=measure,
    claims=(
        *mitra.claims("Larger tau leads to larger regret.", NAMES),
        Claim("Theorem 2's bound holds at every prefix of every seed.", bounded),
    ),
    draw=draw,
    minutes=0.5,
    chosen=mitra.CHOSEN,
)
