"""The gain of the planned quantiser at equal traffic (Kwon et al. 2023, Fig. 3)."""

from typing import Any

import mainstem as ms
from mainstem.papers import kwon
from mainstem.papers.evidence import rising
from mainstem.papers.result import Claim, Numbers, Result
from mainstem.papers.runner import Runner
from mainstem.report import figures

RATE = 0.086
PLANNED, PLAIN, AVERAGED = "OFedIQ, planned", "OFedIQ(1, 0.086, 7, 1)", "OFedAvg(0.01)"


def measure(runner: Runner, **size: Any) -> Numbers:
    """Accuracy(t) for each method that uses 1 % of the uplink."""
    problem, _ = kwon.world("mnist", size["clients"], size.get("model", "network"))
    plan = ms.plan(0.01, problem.parameters)
    ways = {
        PLANNED: ms.ofediq(kwon.STEP, RATE, levels=plan.levels, blocks=plan.blocks),
        PLAIN: ms.ofediq(kwon.STEP, RATE, levels=7, blocks=1),
        AVERAGED: ms.ofedavg(kwon.STEP, 0.01),
    }
    return {name: kwon.curve(runner, way, "mnist", **size) for name, way in ways.items()}


def draw(numbers: Numbers) -> Any:
    """The paper's figure."""
    return figures.curves(numbers, "Accuracy(t)", across="time step t", log="x")


RESULT = Result(
    name="ofediq-fig3",
    paper="Kwon, Park and Hong 2023, Fig. 3",
    about="Accuracy on MNIST of three ways to save 99 % of the uplink.",
    full=kwon.FULL_MNIST,
    quick=kwon.QUICK_MNIST,
    measure=measure,
    claims=(
        Claim(
            "The optimised OFedIQ(1, 0.086, 3, 777) outperforms OFedIQ(1, 0.086, 7, 1).",
            lambda numbers: rising(kwon.final(numbers, PLAIN, PLANNED)),
            quick=None,  # less than a tenth of a point: only the full size can decide it
        ),
        Claim(
            "The optimised OFedIQ(1, 0.086, 3, 777) outperforms OFedAvg(0.01).",
            lambda numbers: rising(kwon.final(numbers, AVERAGED, PLANNED)),
        ),
    ),
    draw=draw,
    minutes=1,
    chosen=(*kwon.CHOSEN, kwon.IN_QUICK),
    gpu=True,
)
