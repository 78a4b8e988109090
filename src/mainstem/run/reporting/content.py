"""Content of a report: what its page shows of compared runs or of a sweep."""

import datetime
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import numpy as np

from mainstem.report import figures
from mainstem.report.tables import for_page
from mainstem.run.comparison import Comparison, compare
from mainstem.run.labels import short
from mainstem.run.reporting import regrets
from mainstem.run.reporting.charts import MOST, Chart, Curve, Section, drawn, points
from mainstem.run.reporting.clients import clients
from mainstem.run.reporting.conditions import conditions
from mainstem.run.reporting.described import described, environment
from mainstem.run.reporting.sections import communication, performance
from mainstem.run.swept import Sweep, edge_warning

DETAILED = 6  # runs of a sweep that are shown in detail, the best ones
WIDTH = 0.6  # of the line of a value that is no number, where 1 is the distance to the next


def of_runs(
    compared: Comparison, regret: bool | None = None, title: str = "", command: str = ""
) -> dict[str, Any]:
    """The content for compared runs.

    `regret` says whether the best models in hindsight are computed; None: where that takes seconds. `command`
    is the one that made the runs.
    """
    runs = compared.runs
    found = regrets.regrets(runs, regret)
    sections = [
        Section("performance", "Loss and accuracy", performance(compared)),
        regrets.section(runs, found),
        communication(compared, found),
        clients(runs),
        conditions(runs),
    ]
    most = points(sum(len(chart.curves) for each in sections for chart in each.charts))
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return {
        "title": title or ", ".join(dict.fromkeys(run.name for run in runs.values())),
        "made": f"A report of mainstem {metadata.version('mainstem')}, {now}",
        "command": command,
        "table": for_page(compared.rows, "The last values; ± is the standard error over seeds"),
        "warnings": [f"{label}: {run.diverged}" for label, run in runs.items() if run.diverged],
        "sections": [_drawn(each, most) for each in sections],
        "runs": [described(label, run) for label, run in runs.items()],
        "environment": environment(runs),
    }


def _drawn(section: Section, most: int) -> dict[str, Any]:
    return section._asdict() | {"charts": [drawn(chart, most) for chart in section.charts]}


def of_sweep(
    sweep: Sweep, regret: bool | None = None, title: str = "", command: str = ""
) -> dict[str, Any]:
    """The content for a sweep: its grid, and its best runs in detail."""
    best = sweep.order[:DETAILED]
    named = {_point(sweep.points[n]): sweep.runs[n] for n in best}
    title = title or f"Sweep of {', '.join(sweep.axes)}"
    found = of_runs(compare(named, sweep.y), regret, title, command)
    found["table"] = for_page([sweep.rows[n] for n in sweep.order], "All points, the best first")
    found["warnings"] += [edge_warning(sweep)] if sweep.edges else []
    names = sweep.varied
    if len(names) > 1:
        found["grid"] = _grid(sweep)
    elif names:
        numbers = all(isinstance(each, int | float) for each in sweep.axes[names[0]])
        chart = _along(sweep) if numbers else _beside(sweep)
        found["sections"].insert(0, _drawn(Section("grid", "Grid", [chart]), MOST))
    return found


def _grid(sweep: Sweep) -> dict[str, Any]:
    """The values of two parameters against each other, at the best values of the others."""
    first, second, cells = sweep.grid()
    known, place = np.isfinite(cells), None
    if known.any():
        finite = np.where(known, cells, -np.inf if sweep.higher else np.inf)
        flat = np.argmax(finite) if sweep.higher else np.argmin(finite)
        place = [int(each) for each in np.unravel_index(flat, cells.shape)]
    others = [f"{name} = {short(sweep.best[name])}" for name in sweep.varied[2:]]
    at = f", at {', '.join(others)} of the best point" if others else ""
    end = "; all diverged" if place is None else "; the best is framed"
    return {
        "caption": f"{figures.title_of(sweep.y)} at the end{at}{end}",
        "rows": {"name": sweep.varied[0], "values": [short(each) for each in first]},
        "columns": {"name": sweep.varied[1], "values": [short(each) for each in second]},
        "cells": cells.tolist(),
        "higher": sweep.higher,
        "best": place,
    }


def _along(sweep: Sweep) -> Chart:
    """The values of one parameter."""
    given, values = sweep.along()
    at = np.asarray(given, float)
    log = "x" * figures.wide([at])
    title = f"{figures.title_of(sweep.y)} at the end"
    return Chart(title, sweep.varied[0], sweep.y, [Curve(0, sweep.y, at, values)], log)


def _beside(sweep: Sweep) -> Chart:
    """The values of one parameter that are no numbers, side by side: each has a line with its band."""
    given, values = sweep.along()
    names = [short(each) for each in given]
    sides = np.array([-WIDTH / 2, WIDTH / 2])
    curves = [
        Curve(n, name, n + sides, np.repeat(values[:, n, None], 2, axis=1))
        for n, name in enumerate(names)
    ]
    title = f"{figures.title_of(sweep.y)} at the end"
    return Chart(title, sweep.varied[0], sweep.y, curves, names=names)


def _point(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={short(given)}" for name, given in point.items())
