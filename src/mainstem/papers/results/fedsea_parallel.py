"""The effect of the number of clients on FedSEA's regret (Sahu et al. 2026, Remarks 2 to 4)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import mainstem as ms
from mainstem import theory
from mainstem.papers import sahu
from mainstem.papers.evidence import (
    Evidence,
    all_of,
    between,
    exponent,
    falling,
    jackknife,
    rising,
    shown,
)
from mainstem.papers.result import Claim, Numbers, Result
from mainstem.papers.runner import Runner
from mainstem.report import figures

STRONG = 10.0  # K^2 in units of sigma^2 / L
WORLDS = {"K² = 0": 0.0, f"K² = {STRONG:g} σ²/L": STRONG}
CONVEX, CURVED = "convex", "strongly convex"


def measure(
    runner: Runner, *, clients: Sequence[int], periods: Sequence[int], steps: int, seeds: int
) -> Numbers:
    """Regret [seeds, clients] for each temporal variation, and at K^2 = 0 for each tau."""
    numbers = {"clients": np.array(clients), "steps": np.array(steps)}

    def cells(algorithm: Any, at: Sequence[int], temporal: float = 0.0) -> np.ndarray:
        found = [
            sahu.regret(
                runner,
                algorithm(count),
                sahu.world(count, spatial=1.0, temporal=temporal),
                at,
                seeds=seeds,
            )
            for count in clients
        ]
        return np.stack(found, axis=1)  # [seeds, clients, prefixes]

    for name, temporal in WORLDS.items():
        numbers[f"{CONVEX}, {name}"] = cells(
            lambda m, k=temporal: tuned(m, 1, steps, k), [steps], temporal
        )[..., 0]
        falls = theory.fedsea_strongly_convex(1.0, smoothness=1.0)
        early, late = np.moveaxis(
            cells(lambda m, step=falls: ms.fedsea(step), [steps // 8, steps], temporal), 2, 0
        )
        numbers[f"{CURVED}, {name}"] = late - early
        numbers[f"{CURVED}, {name}, whole"] = late
    numbers["τ = 1"] = numbers[f"{CONVEX}, K² = 0"]
    for period in periods:
        numbers[f"τ = {period}"] = cells(lambda m, tau=period: tuned(m, tau, steps), [steps])[
            ..., 0
        ]
    return numbers


def tuned(clients: int, period: int, steps: int, temporal: float = 0.0) -> Any:
    """FedSEA with the step size of eq. (10)."""
    step = sahu.balanced(steps, clients=clients, temporal=temporal)
    return ms.fedsea(step, period=period if clients > 1 else 1)


def power(numbers: Numbers, name: str, low: float, high: float) -> Evidence:
    """The exponent of M in the mean regret."""
    found = exponent(numbers["clients"].tolist(), numbers[name])
    return between(f"{name}: exponent of M", found, low, high)


def linear_gain(numbers: Numbers) -> Evidence:
    """The exponent of the part that grows with log T, and for the reader that of the complete regret."""
    name = f"{CURVED}, K² = 0"
    whole = exponent(numbers["clients"].tolist(), numbers[f"{name}, whole"])
    part = power(numbers, name, -1.25, -0.75)
    return part._replace(
        measured=f"{part.measured} (of the regret since the start: {shown(whole)})"
    )


def turns(numbers: Numbers) -> Evidence:
    """For each tau, the regret falls to its minimum and rises again; its location is compared with the paper's."""
    clients, found = numbers["clients"], []
    for name, tau in periods(numbers).items():
        mean = numbers[name].mean(axis=0)
        least = int(np.clip(mean.argmin(), 1, len(clients) - 2))
        places = {"1": 0, f"{clients[least]}": least, f"{clients[-1]}": -1}
        ends = {f"M = {count}": numbers[name][:, place] for count, place in places.items()}
        down, up = list(ends.items())[:2], list(ends.items())[1:]
        expected = (float(numbers["steps"]) ** 0.25 / tau) ** (4 / 3)
        best = jackknife(lambda v: lowest(clients, v), numbers[name])
        found += [
            falling(dict(down)),
            rising(dict(up)),
            between(f"{name}: best M over {expected:.2g}, log₂", best - np.log2(expected), -1, 1),
        ]
    return all_of(*found)


def periods(numbers: Numbers) -> Mapping[str, int]:
    """Names and values of each tau above 1."""
    names = [name for name in numbers if name.startswith("τ = ") and name != "τ = 1"]
    return {name: int(name.removeprefix("τ = ")) for name in names}


def lowest(clients: np.ndarray, values: np.ndarray) -> float:
    """log2 of M at the minimum of the parabola through the three lowest points."""
    x, y = np.log2(clients), np.log(values.mean(axis=0))
    middle = int(np.clip(y.argmin(), 1, len(y) - 2))
    a, b, _ = np.polyfit(x[middle - 1 : middle + 2], y[middle - 1 : middle + 2], 2)
    return float(-b / (2 * a))


def draw(numbers: Numbers) -> Any:
    """Regret against M: both theorems, and the convex one for several tau."""
    clients = numbers["clients"]
    taus = {name: numbers[name] for name in ("τ = 1", *periods(numbers))}
    titled = {
        "convex, $\\tau = 1$": by_world(numbers, CONVEX),
        "strongly convex, $\\tau = 1$": by_world(numbers, CURVED),
        "convex, $K^2 = 0$": taus,
    }
    label = "expected regret $E[R_T]$, eq. (3)"
    figure = figures.panels(titled, label, steps=clients, log="xy", across="clients M", marked=True)
    for name, tau in periods(numbers).items():
        line = next(line for line in figure.axes[2].lines if line.get_label() == name)
        place = (float(numbers["steps"]) ** 0.25 / tau) ** (4 / 3)
        text = "τ = $T^{1/4}/M^{3/4}$" if tau == min(periods(numbers).values()) else "_"
        figure.axes[2].axvline(place, color=line.get_color(), linestyle=":", label=text)
    figure.axes[1].set_ylabel("$E[R_T] - E[R_{T/8}]$")
    return sahu.tidy(figure, ticks=dict.fromkeys(range(3), clients))


def by_world(numbers: Numbers, losses: str) -> dict[str, np.ndarray]:
    """The curves of a panel."""
    return {name: numbers[f"{losses}, {name}"] for name in WORLDS}


RESULT = Result(
    name="fedsea-parallel",
    paper=f"{sahu.PAPER}, Remarks 2, 3 and 4",
    about="FedSEA's expected regret against the number of clients, in worlds that move and that do not.",
    full={"clients": (1, 2, 4, 8, 16, 32, 64), "periods": (2, 4), "steps": 8192, "seeds": 40},
    quick={"clients": (1, 4, 16), "periods": (4,), "steps": 4096, "seeds": 40},
    measure=measure,
    claims=(
        Claim(
            "If K^2 is mild enough, the network can achieve an improved expected regret O(sqrt(T / M)).",
            lambda numbers: power(numbers, f"{CONVEX}, K² = 0", -0.75, -0.25),
        ),
        Claim(
            "If K_max^2 is mild enough, we can achieve an improved expected regret O(log T / M).",
            linear_gain,
        ),
        Claim(
            "The temporal heterogeneity term does not improve on averaging (convex).",
            lambda numbers: power(numbers, f"{CONVEX}, {list(WORLDS)[1]}", -0.25, 0.25),
        ),
        Claim(
            "The temporal heterogeneity term does not improve on averaging (strongly convex).",
            lambda numbers: power(numbers, f"{CURVED}, {list(WORLDS)[1]}", -0.25, 0.25),
        ),
        Claim(
            "To retain O(sqrt(T / M)) regret, tau needs to satisfy tau = O(T^(1/4) / M^(3/4)): "
            "with more clients than that, regret rises.",
            turns,
        ),
    ),
    draw=draw,
    minutes=2.5,
    chosen=(
        *sahu.CHOSEN,
        "The convex step is that of (10), D / sqrt(T (sigma^2 / M + L K^2)), for every tau: with it the regret is "
        "sqrt(T / M) + M tau^2, as in Remark 3. `theory.fedsea_convex` knows tau, and holds back.",
        "Strong temporal variation is K^2 = 10 sigma^2 / L, ten times the edge of Remark 2 at M = 1.",
        "Strongly convex: what regret grows by from T / 8 to T, the log T term. The start costs the same for "
        "every M (Theorem 2's constant terms) and hides it at large M.",
        "Near T^(1/4) / M^(3/4): the best M is within a factor of 2, the paper leaving out constants.",
    ),
)
