"""FedSEA's claims on streams whose expected losses are known (Sahu, Jawanpuria and Sharma 2026).

The paper has no experiments. Here its adversary changes the mean of normal targets, the losses are quadratic,
and the expected regret (3) is exact given the models. Every constant is 1 unless a result varies it.
"""

import math
from collections.abc import Container, Mapping
from typing import Any

import numpy as np

import mainstem as ms
from mainstem.base import Algorithm, Problem, Stream
from mainstem.papers.runner import Runner

PAPER = "Sahu, Jawanpuria and Sharma 2026"
DIMENSION = 5
KNOWN: dict[str, Any] = {"smoothness": 1.0, "distance": 1.0, "noise": 1.0}
CHOSEN = (
    "The world: losses |x - a|^2 / 2 in five dimensions, a normal around a moving centre. The paper has none.",
    "L = D = sigma^2 = 1: no constant is favoured.",
    "Means after steps tau, 2 tau, ..., as the proof needs them, and no projection, as it assumes.",
)


def world(
    clients: int,
    *,
    spatial: float = 0.0,
    temporal: float = 0.0,
    drift: str = "alternating",
) -> Stream:
    """The stream with L = D = sigma^2 = 1; zeta^2 is `spatial` (0 for a single client), the mean of K_t^2
    `temporal`."""
    return ms.streams.sea_quadratic(
        clients,
        DIMENSION,
        spatial=spatial if clients > 1 else 0.0,
        temporal=temporal,
        drift=drift,
    )


def regret(
    runner: Runner,
    algorithm: Algorithm,
    stream: Stream,
    at: Any,
    *,
    seeds: int,
    problem: Problem | None = None,
) -> np.ndarray:
    """Expected regret (3) at the prefixes `at`, [seeds, prefixes], of a run as long as the longest.

    In float64: a difference of two regrets can be a thousandth of the losses.
    """
    asked = [int(t) for t in at]
    run = runner.run(
        algorithm,
        ms.problems.quadratic(DIMENSION) if problem is None else problem,
        stream,
        steps=max(asked),
        seeds=seeds,
        measure=["expected"],
        dtype="float64",
    )
    return np.atleast_2d(run.regret(asked, kind="expected").values)


def balanced(steps: int, *, clients: int, temporal: float = 0.0) -> float:
    """The step size of eq. (10): D^2 / eta and T eta (sigma^2 / M + L K^2) of (9) are equal, without constants."""
    return 1 / math.sqrt(steps * (1 / clients + temporal))


def spaced(first: int, last: int, count: int) -> np.ndarray:
    """About `count` even prefixes from `first` to `last`, in equal ratios."""
    return np.unique(2 * np.round(np.geomspace(first, last, count) / 2).astype(int))


def tidy(figure: Any, ticks: Mapping[int, Any], legends: Container[int] = range(99)) -> Any:
    """Gives each panel its own legend, and sets ticks on logarithmic axes that do not overlap.

    `ticks` gives the ticks of a panel's horizontal axis, `legends` the panels that have a legend. The part of a
    curve's name before a colon identifies the panel and is left out.
    """
    from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

    for legend in list(figure.legends):
        legend.remove()
    for n, axes in enumerate(figure.axes):
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() == "log":
                axis.set_minor_formatter(NullFormatter())
        if n in ticks:
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_locator(FixedLocator([float(tick) for tick in ticks[n]]))
            axes.xaxis.set_major_formatter(
                lambda value, _: f"{value:.2g}" if 0 < value < 1 else f"{value:,.0f}"
            )
        handles, names = axes.get_legend_handles_labels()
        text = [name.split(": ")[-1] for name in names]
        if n in legends:
            axes.legend(handles, text, fontsize="x-small", frameon=False)
    return figure
