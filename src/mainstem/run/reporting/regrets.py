"""Regrets of a report: with their certificates, and beside them the bounds of the theorems."""

from collections.abc import Mapping

import numpy as np

from mainstem.errors import MainstemError
from mainstem.measure.regret import CURVE, Regret
from mainstem.run.drawing import bound_title
from mainstem.run.reporting.charts import Chart, Curve, Section, texts
from mainstem.run.run import Run
from mainstem.theory.applied import beside, in_one_unit
from mainstem.theory.beside import Beside

QUICK = 1e9  # operations of Newton's method, for one step each: the best models are found within seconds


def regrets(runs: Mapping[str, Run], asked: bool | None) -> dict[str, Regret | str]:
    """The regret curve of each run, or why there is none."""
    return {label: _regret(run, asked) for label, run in runs.items()}


def _regret(run: Run, asked: bool | None) -> Regret | str:
    if asked is False or (asked is None and not _is_quick(run)):
        return (
            "not computed, it takes a while: mainstem report --regret, or report(..., regret=True)"
        )
    try:
        return run.regret("curve")
    except MainstemError as error:
        return str(error)


def _is_quick(run: Run) -> bool:
    size = run.summary
    samples, width = size.steps * size.clients * len(size.seeds), size.parameters
    work = CURVE * (samples * width**2 + width**3)
    return work <= QUICK and run.problem is not None and run.problem.convex


def section(runs: Mapping[str, Run], found: Mapping[str, Regret | str]) -> Section:
    """The regrets, and the bounds beside what they bound."""
    measured = {label: each for label, each in found.items() if isinstance(each, Regret)}
    statements = texts({label: str(each) for label, each in found.items()})
    numbers = {label: n for n, label in enumerate(runs)}
    charts = []
    if measured:
        kinds = ", ".join(sorted({each.kind for each in measured.values()}))
        curves = [
            Curve(numbers[label], label, np.asarray(each.steps), np.atleast_2d(each.values))
            for label, each in measured.items()
        ]
        charts.append(Chart(f"{kinds} regret", "step t", "regret", curves))
    bounded: dict[str, Beside] = {}
    bounds: dict[str, str] = {}
    for label in measured:
        try:
            bounded[label] = beside(runs[label])
            bounds[label] = str(bounded[label].bound)
        except MainstemError as error:
            bounds[label] = f"no bound: {str(error).removeprefix('bound: ')}"
    if bounded:
        charts.append(_beside(runs, numbers, bounded))
    return Section("regret", "Regret", charts, [*statements, *texts(bounds)])


def _beside(
    runs: Mapping[str, Run], numbers: Mapping[str, int], bounded: Mapping[str, Beside]
) -> Chart:
    """What the theorems bound, and their bounds dashed; means over clients if the papers' units differ."""
    bounded = in_one_unit(bounded, {n: run.summary.clients for n, run in runs.items()})
    curves = []
    for label, each in bounded.items():
        steps = np.asarray(each.bound.steps, float)
        most = np.broadcast_to(np.asarray(each.bound.value, float), steps.shape)[None]
        title = f"{label}: {bound_title(each.bound)}"
        curves.append(Curve(numbers[label], label, steps, np.atleast_2d(each.measured)))
        curves.append(Curve(numbers[label], title, steps, most, dashed=True))
    of = ", ".join(dict.fromkeys(each.bound.of for each in bounded.values()))
    return Chart("Regret, and the bound of the theorem", "step t", of, curves, "xy")
