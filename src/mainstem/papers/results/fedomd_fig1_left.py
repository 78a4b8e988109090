"""Regret against the horizon, for several communication periods (Mitra et al. 2021, Fig. 1, left)."""

from typing import Any

import numpy as np

from mainstem.papers import mitra
from mainstem.papers.evidence import Evidence, rising, shown
from mainstem.papers.result import Claim, Numbers, Result
from mainstem.papers.runner import Runner
from mainstem.report import figures

PERIODS = (1, 5, 20, 50)
NAMES = tuple(f"tau = {period}" for period in PERIODS)


def measure(runner: Runner, **size: int) -> Numbers:
    """Regret [seeds, steps] for each period, and the theorem's bound."""
    numbers = {}
    for name, period in zip(NAMES, PERIODS, strict=True):
        numbers[name], numbers[f"bound, {name}"] = mitra.played(runner, period, **size)
    return numbers


def bounded(numbers: Numbers) -> Evidence:
    """The largest share of the bound that any prefix of any seed reaches, for each period."""
    shares = {
        name: np.max(numbers[name] / numbers[f"bound, {name}"], axis=1).max(keepdims=True)
        for name in NAMES
    }
    text = ", ".join(f"{name}: at most {shown(share)} of it" for name, share in shares.items())
    return Evidence(text, tuple(1 - share for share in shares.values()))


def draw(numbers: Numbers) -> Any:
    """The paper's figure."""
    named = {name: numbers[name] for name in NAMES}
    return figures.curves(named, "regret $R_T$ (collective)", across="time horizon T", log="x")


RESULT = Result(
    name="fedomd-fig1-left",
    paper="Mitra, Hassani and Pappas 2021, Fig. 1 (left)",
    about="FedOMD's regret against the horizon for communication periods of 1 to 50 steps.",
    full={"steps": 2000, "seeds": 200},
    quick={"steps": 1000, "seeds": 100},
    measure=measure,
    claims=(
        Claim(
            "Larger tau leads to larger regret.",
            lambda numbers: rising({name: numbers[name][:, -1] for name in NAMES}),
        ),
        Claim(
            "R_T scales logarithmically with T.",
            lambda numbers: mitra.like_log(numbers, NAMES),
        ),
        Claim("Theorem 2's bound holds at every prefix of every seed.", bounded),
    ),
    draw=draw,
    minutes=0.5,
    chosen=mitra.CHOSEN,
)
