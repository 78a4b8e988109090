"""Claims of FedRes's paper about its figures (Agarwal, Langford and Wei 2020, Sections 6.3 to 6.5, Appendix E)."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from mainstem.papers.agarwal import APART, CHOSEN, DATASETS, TOGETHER, at, sources, swept
from mainstem.papers.evidence import (
    FAILS,
    HOLDS,
    NEARLY,
    UNDECIDED,
    Evidence,
    all_of,
    falling,
    near,
    not_below,
    rising,
)
from mainstem.papers.result import Claim, Numbers, Result
from mainstem.report import figures

CLOSE = 0.02  # of accuracy: "nearly the best", "improves little", "robust"
MODEST = 0.05
LONG, MODERATE = 200, 50  # delays
READINGS = {"FedRes": "Algorithms 3 and 4 as written", "FedRes, on arrival": "used on arrival"}

# Why some claims do not hold as printed; accuracies are those of the full size, 50 clients.
UNTUNED = (
    "Central is 5 to 6 points behind when each method has the AdaGrad scale that suits it. With scale 1 for "
    "all, which suits none, Central is ahead: 0.83 against 0.61 on mnist, 0.88 against 0.71 on usps. The paper "
    "ran Vowpal Wabbit's default rate."
)
BEHIND = (
    "Central has half of the features and one model for all tasks, and is 7 to 12 points behind; at none of "
    "the AdaGrad scales tried (0.003 to 1) is the best Central above the best Independent."
)
LETTER = (
    "3 to 4 points below Independent: half of the features can be used only through one model for all, and the "
    "18 tasks of letter have little in common."
)
PENDIGITS = "1.4 to 1.9 points below Independent, too close to the two points allowed to tell."
SHUTTLE = (
    "Independent is ahead by 2 to 6 points, but rollouts differ more: what the rare classes of shuttle leave "
    "to a client depends on the draw."
)
AHEAD = (
    "FedRes is above both on shuttle, sensorless and covtype, by 1.4 to 3.4 points; that it is by more than two "
    "cannot be decided from 50 rollouts."
)
LATE = (
    "Late gradients of AdaGrad pile up: a hundred steps in one direction before the first answer. Accuracy "
    "is near 0.5 from a delay of 100 on. Used on arrival, at the newest models, late samples cost little."
)

Recorded = Mapping[str, tuple[str | None, str | None, str]]  # by claim: full, quick, why
TUNED: Recorded = {  # for both Figures 1 and 2
    "mnist: type": (FAILS, None, UNTUNED),
    "satimage: type": (FAILS, FAILS, BEHIND),
    "sensorless: type": (FAILS, None, BEHIND),
    "usps: type": (FAILS, FAILS, UNTUNED),
    "letter: near": (FAILS, None, LETTER),
    "shuttle: type": (NEARLY, None, SHUTTLE),
    "ahead": (UNDECIDED, None, AHEAD),
}
Shows = Callable[[Numbers], Evidence]
Judged = dict[str, tuple[str, Shows]]  # by claim: its text, and the function that tests it


def best_other(numbers: Numbers, source: str, **where: int) -> tuple[str, np.ndarray]:
    """The better of the two baselines, and its accuracies."""
    sides = {name: at(numbers, source, name, **where) for name in ("Independent", "Central")}
    name = max(sides, key=lambda each: float(sides[each].mean()))
    return name, sides[name]


def near_the_best(numbers: Numbers, source: str, method: str = "FedRes", **where: int) -> Evidence:
    """The method is at most two points below the better baseline."""
    name, best = best_other(numbers, source, **where)
    return not_below({method: at(numbers, source, method, **where), name: best}, CLOSE)


def ordered(numbers: Numbers, source: str, methods: Sequence[str], **where: int) -> Evidence:
    """Each method is above the one before it."""
    return rising({name: at(numbers, source, name, **where) for name in methods})


# --- Figures 1 and 2: three methods side by side --------------------------------------------------


def side_by_side(datasets: Sequence[str]) -> Judged:
    """Claims: FedRes is near the best everywhere and far ahead somewhere; the two types of datasets."""
    judged: Judged = {}
    for name in datasets:
        judged[f"{name}: near"] = (
            f"FedRes is always nearly the best: {name}.",
            partial(near_the_best, source=name),
        )
    for name in datasets:
        pair = ("Independent", "Central") if name in TOGETHER else ("Central", "Independent")
        judged[f"{name}: type"] = (
            f"{pair[1]} outperforms {pair[0]} on {name}.",
            partial(ordered, source=name, methods=pair),
        )
    judged["ahead"] = ("FedRes is substantially superior to both in some cases.", far_ahead)
    return judged


def far_ahead(numbers: Numbers) -> Evidence:
    """On some dataset, FedRes is more than two points above the better baseline."""
    leads = {
        name: at(numbers, name, "FedRes") - best_other(numbers, name)[1]
        for name in sources(numbers)
    }
    name = max(leads, key=lambda each: float(leads[each].mean()))
    text = rising(
        {"better baseline": best_other(numbers, name)[1], "FedRes": at(numbers, name, "FedRes")}
    )
    return Evidence(f"{name}: {text.measured}", (leads[name] - CLOSE,))


def comparison(
    name: str, figure: str, clients: int, minutes: float, quick: Sequence[str], recorded: Recorded
) -> Result:
    """A result with a bar for each dataset and method."""

    def draw(numbers: Numbers) -> Any:
        groups = {
            source: {
                method: at(numbers, source, method)
                for method in ("Independent", "Central", "FedRes")
            }
            for source in sources(numbers)
        }
        return figures.bars(groups, "held-out accuracy")

    size = {"clients": (clients,), "delays": (0,), "readings": False}
    return Result(
        name=name,
        paper=f"Agarwal, Langford and Wei 2020, {figure}",
        about=f"Accuracy of Independent, Central and FedRes with P = {clients} clients, no delay.",
        full={"datasets": DATASETS, "seeds": 50, **size},
        quick={"datasets": tuple(quick), "seeds": 20, **size},
        measure=swept,
        claims=claims_of(side_by_side(DATASETS), recorded, quick),
        draw=draw,
        minutes=minutes,
        chosen=CHOSEN,
    )


# --- Figures 3, 4 and 8: over the number of clients -----------------------------------------------


def with_clients(datasets: Sequence[str]) -> Judged:
    """Claims: accuracy rises with the number of clients where tasks are alike, and hardly where they are not."""
    judged: Judged = {}
    for name in datasets:
        if name in TOGETHER:
            judged[f"{name}: rises"] = (
                f"FedRes improves as the number of clients increases: {name}.",
                partial(improves, source=name),
            )
        else:
            judged[f"{name}: flat"] = (
                f"FedRes improves little with the number of clients: {name}.",
                partial(improves_little, source=name),
            )
        judged[f"{name}: near"] = (
            f"FedRes is comparable with the best of Independent and Central at every number of clients: {name}.",
            partial(always_near, source=name),
        )
    return judged


def improves(numbers: Numbers, source: str) -> Evidence:
    """FedRes improves from the fewest to the most clients."""
    return rising(ends(numbers, source, "FedRes"))


def improves_little(numbers: Numbers, source: str) -> Evidence:
    """FedRes changes by at most two points from the fewest to the most clients."""
    return near(ends(numbers, source, "FedRes"), CLOSE)


def always_near(numbers: Numbers, source: str) -> Evidence:
    """FedRes is near the best at every number of clients."""
    counts = [int(count) for count in numbers["clients"]]
    return all_of(*(near_the_best(numbers, source, clients=count) for count in counts))


def ends(
    numbers: Numbers, source: str, method: str, delay: int | None = None
) -> dict[str, np.ndarray]:
    """Accuracy at the fewest and at the most clients."""
    counts = [int(count) for count in numbers["clients"]]
    return {
        f"P = {count}": at(numbers, source, method, count, delay)
        for count in (counts[0], counts[-1])
    }


def over_clients(
    name: str,
    figure: str,
    datasets: Sequence[str],
    minutes: float,
    quick: Sequence[str],
    recorded: Recorded,
) -> Result:
    """A result with a panel for each dataset over the number of clients, no delay."""
    size = {"delays": (0,), "readings": False}
    return Result(
        name=name,
        paper=f"Agarwal, Langford and Wei 2020, {figure}",
        about=f"Accuracy against the number of clients, no delay: {', '.join(datasets)}.",
        full={"datasets": tuple(datasets), "clients": (10, 20, 50, 100), "seeds": 50, **size},
        quick={"datasets": tuple(quick), "clients": (10, 50), "seeds": 20, **size},
        measure=swept,
        claims=claims_of(with_clients(datasets), recorded, quick),
        draw=drawn("clients", "number of clients P"),
        minutes=minutes,
        chosen=(*CHOSEN, "P = 10, 20, 50 and 100: the paper's axes are not in its text."),
    )


# --- Figures 5, 9 and 10: over the delay ----------------------------------------------------------


def longest(numbers: Numbers) -> int:
    """The longest delay that was measured."""
    return int(numbers["delays"][-1])


def lost(numbers: Numbers, source: str, method: str, allowed: float) -> Evidence:
    """The longest delay costs at most `allowed`."""
    late, prompt = (at(numbers, source, method, delay=d) for d in (longest(numbers), 0))
    return not_below({f"{method}, delay {longest(numbers)}": late, "no delay": prompt}, allowed)


def suffers(numbers: Numbers, source: str, method: str) -> Evidence:
    """The longest delay costs accuracy."""
    named = {f"delay {d}": at(numbers, source, method, delay=d) for d in (0, longest(numbers))}
    return falling(named)


def over_delays(
    name: str,
    figure: str,
    datasets: Sequence[str],
    judged: Judged,
    minutes: float,
    quick: Sequence[str],
    recorded: Recorded,
    delays: Sequence[int] = (0, MODERATE, LONG),
) -> Result:
    """A result with a panel for each dataset over the delay, 50 clients; `delays` are those of the quick size."""
    size = {"clients": (50,), "readings": True}
    return Result(
        name=name,
        paper=f"Agarwal, Langford and Wei 2020, {figure}",
        about=f"Accuracy against the delay, P = 50, for both readings of FedRes: {', '.join(datasets)}.",
        full={
            "datasets": tuple(datasets),
            "delays": (0, 20, MODERATE, 100, LONG),
            "seeds": 50,
            **size,
        },
        quick={"datasets": tuple(quick), "delays": tuple(delays), "seeds": 20, **size},
        measure=swept,
        claims=claims_of(judged, recorded, quick),
        draw=drawn("delays", "delay (steps, both ways together)"),
        minutes=minutes,
        chosen=(
            *CHOSEN,
            "Delays of 0 to 200 steps beyond the fastest exchange, half up and half down; Independent has none.",
        ),
    )


# --- Figures 11 and 12: over the number of clients, with a delay ----------------------------------


def cost(numbers: Numbers, source: str, method: str, clients: int, delay: int) -> np.ndarray:
    """The accuracy lost to a delay."""
    prompt, late = (at(numbers, source, method, clients, d) for d in (0, delay))
    return np.asarray(prompt - late)


def overcome(numbers: Numbers, source: str, method: str, delay: int) -> Evidence:
    """The accuracy lost with the most clients is below that with the fewest."""
    counts = [int(count) for count in numbers["clients"]]
    named = {
        f"lost at P = {count}": cost(numbers, source, method, count, delay)
        for count in (counts[0], counts[-1])
    }
    return falling(named)


def larger(numbers: Numbers, source: str, delays: Sequence[int]) -> Evidence:
    """With 50 clients, the longer delay costs more."""
    return rising({f"lost at delay {d}": cost(numbers, source, "FedRes", 50, d) for d in delays})


def late(
    name: str, figure: str, delay: int, minutes: float, quick: Sequence[str], recorded: Recorded
) -> Result:
    """A result with a panel for each dataset over the number of clients, at a fixed delay."""
    delays = (0, delay) if delay == 20 else (0, 20, delay)
    judged: Judged = {}
    for source in DATASETS:
        for method, reading in READINGS.items():
            judged[f"{source}: overcome, {method}"] = (
                f"The loss is overcome as the number of clients increases: {source}, {reading}.",
                partial(overcome, source=source, method=method, delay=delay),
            )
    if delay != 20:
        for source in DATASETS:
            judged[f"{source}: larger"] = (
                f"The loss is larger for the higher delay: {source}.",
                partial(larger, source=source, delays=(20, delay)),
            )

    def draw(numbers: Numbers) -> Any:
        last = {key: v[:, :, -1:] if v.ndim == 3 else v for key, v in numbers.items()}
        return drawn("clients", "number of clients P")(last)

    size = {"delays": delays, "readings": True}
    return Result(
        name=name,
        paper=f"Agarwal, Langford and Wei 2020, {figure}",
        about=f"Accuracy against the number of clients under a delay of {delay}, both readings of FedRes.",
        full={"datasets": DATASETS, "clients": (10, 50, 100), "seeds": 50, **size},
        quick={"datasets": tuple(quick), "clients": (10, 50), "seeds": 20, **size},
        measure=swept,
        claims=claims_of(judged, recorded, quick),
        draw=draw,
        minutes=minutes,
        chosen=CHOSEN,
    )


# --- for all figures ------------------------------------------------------------------------------


def claims_of(judged: Judged, recorded: Recorded, quick: Sequence[str]) -> tuple[Claim, ...]:
    """The claims with their recorded verdicts; claims on datasets not in the quick size are for the full size
    only."""
    made = []
    for key, (says, shows) in judged.items():
        full, small, why = recorded.get(key, (HOLDS, HOLDS, ""))
        source = key.partition(":")[0]
        small = None if source in TOGETHER + APART and source not in quick else small
        made.append(Claim(says, shows, full, small, why))
    return tuple(made)


def drawn(axis: str, label: str) -> Callable[[Numbers], Any]:
    """A function that draws a panel for each dataset: accuracy over the number of clients, or over the delay."""

    def draw(numbers: Numbers) -> Any:
        titled = {}
        for source in sources(numbers):
            keys = [key for key in numbers if key.startswith(f"{source}, ")]
            titled[source] = {
                key.partition(", ")[2]: numbers[key][:, :, 0]
                if axis == "clients"
                else numbers[key][:, 0, :]
                for key in keys
            }
        return figures.panels(
            titled, "held-out accuracy", steps=numbers[axis], across=label, marked=True
        )

    return draw
