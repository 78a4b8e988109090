"""The effect of the transmission period at equal traffic (Kwon et al. 2023, Fig. 2)."""

from functools import partial
from typing import Any

import mainstem as ms
from mainstem.papers import kwon
from mainstem.papers.evidence import FAILS, Evidence, all_of, falling, near
from mainstem.papers.result import Claim, Numbers, Result
from mainstem.papers.runner import Runner
from mainstem.report import figures

EARLY = 200
PLAIN = {f"OFedIQ({period}, {period / 100:g}, ∞)": period for period in (1, 5, 20, 100)}
PLANNED = {f"OFedIQ({period}, {0.086 * period:g}, planned)": period for period in (1, 2, 5, 10)}


SEVERER = "For a fixed p / L the loss at t = 200 is severer as L increases."
BEST = "L = 1 is the best choice at the end."
LITTLE = "The loss of the next L is negligible when t is sufficiently large."
HEARD = (
    "At a fixed p / L a longer period hears more samples: each upload sums L gradients. Where few clients are "
    "heard (plain, 10 of 1,000 at a step) that is worth more than fresh models: at the end L = 5 has 0.895, "
    "L = 20 has 0.886, L = 1 has 0.871, L = 100 has 0.830. With the planned quantiser (86 of 1,000) L = 1 is "
    "ahead early, and L = 2 at the end, by 0.3 points."
)


def measure(runner: Runner, **size: Any) -> Numbers:
    """Accuracy(t) for each period L with a fixed p / L, without and with the planned quantiser."""
    problem, _ = kwon.world("mnist", size["clients"], size.get("model", "network"))
    plan = ms.plan(0.01, problem.parameters)
    coded: dict[str, Any] = {"levels": plan.levels, "blocks": plan.blocks}
    plain = {n: ms.ofediq(kwon.STEP, L / 100, period=L) for n, L in PLAIN.items()}
    sent = {n: ms.ofediq(kwon.STEP, 0.086 * L, period=L, **coded) for n, L in PLANNED.items()}
    return {name: kwon.curve(runner, way, "mnist", **size) for name, way in (plain | sent).items()}


def severer(numbers: Numbers, names: tuple[str, ...]) -> Evidence:
    """At t = 200, each longer period is worse."""
    return falling(kwon.final(numbers, *names, at=EARLY))


def best(numbers: Numbers, names: tuple[str, ...]) -> Evidence:
    """At the end, L = 1 is above every other period."""
    return all_of(*(falling(kwon.final(numbers, names[0], other)) for other in names[1:]))


def negligible(numbers: Numbers, names: tuple[str, ...]) -> Evidence:
    """At the end, L = 1 and the next period are within a point."""
    return near(kwon.final(numbers, *names[:2]), kwon.HAIR)


def longest(numbers: Numbers) -> Evidence:
    """At the end, the longest period is below L = 1."""
    names = tuple(PLAIN)
    return falling(kwon.final(numbers, names[0], names[-1]))


def draw(numbers: Numbers) -> Any:
    """The paper's figure, in both readings."""
    titled = {
        "plain, p / L = 0.01": {name: numbers[name] for name in PLAIN},
        "planned quantiser, p / L = 0.086": {name: numbers[name] for name in PLANNED},
    }
    return figures.panels(titled, "Accuracy(t)", across="time step t", log="x")


RESULT = Result(
    name="ofediq-fig2",
    paper="Kwon, Park and Hong 2023, Fig. 2",
    about="Accuracy on MNIST for transmission periods L at a fixed p / L: 99 % of the uplink saved.",
    full=kwon.FULL_MNIST,
    quick=kwon.QUICK_MNIST,
    measure=measure,
    claims=(
        Claim(f"{SEVERER} (plain)", partial(severer, names=tuple(PLAIN)), FAILS, None, HEARD),
        Claim(f"{BEST} (plain)", partial(best, names=tuple(PLAIN)), FAILS, None, HEARD),
        Claim(f"{LITTLE} (plain)", partial(negligible, names=tuple(PLAIN)), FAILS, None, HEARD),
        Claim(f"{SEVERER} (planned quantiser)", partial(severer, names=tuple(PLANNED)), quick=None),
        Claim(
            f"{BEST} (planned quantiser)", partial(best, names=tuple(PLANNED)), FAILS, None, HEARD
        ),
        Claim(
            f"{LITTLE} (planned quantiser)", partial(negligible, names=tuple(PLANNED)), quick=None
        ),
        Claim("The longest period, L = 100, is far behind L = 1 at the end (plain).", longest),
    ),
    draw=draw,
    minutes=6,
    chosen=(
        *kwon.CHOSEN,
        "The paper does not say whether its curves are quantised: both readings are shown. Periods up to "
        "the longest that the budget allows (p = 1, and 0.86).",
        kwon.IN_QUICK,
    ),
    gpu=True,
)
