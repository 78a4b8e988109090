"""Sections of a report: performance and communication."""

from collections.abc import Iterable, Mapping

import numpy as np

from mainstem.measure.regret import Regret
from mainstem.report import figures
from mainstem.report.tables import for_page
from mainstem.run.comparison import Comparison
from mainstem.run.reporting.charts import Chart, Curve, Section
from mainstem.run.run import CURVES


def performance(compared: Comparison) -> list[Chart]:
    """The curves over the steps that all runs have."""
    runs = compared.runs
    known = [compared.y, "accuracy", "mse", "loss"]
    names = [
        name
        for name in dict.fromkeys(known)
        if name != "regret" and all(CURVES.get(name, name) in run.trace for run in runs.values())
    ]
    note = "Bands are two standard errors over seeds."
    several = any(len(run.summary.seeds) > 1 for run in runs.values())
    return [
        Chart(
            figures.title_of(name),
            "step t",
            name,
            [
                Curve(n, label, run.t, np.atleast_2d(run.curve(name)))
                for n, (label, run) in enumerate(runs.items())
            ],
            note=note if several else "",
        )
        for name in names
    ]


def communication(compared: Comparison, regrets: Mapping[str, Regret | str]) -> Section:
    """What was sent, and what it was good for."""
    runs, y = compared.runs, "loss" if compared.y == "regret" else compared.y
    curves, final = [], {}
    for n, (label, run) in enumerate(runs.items()):
        bits, values = np.atleast_2d(run.uplink_bits).mean(axis=0), np.atleast_2d(run.curve(y))
        final[label] = (float(bits[-1]), float(values[:, -1].mean()))
        last = np.append(np.diff(bits) > 0, True)  # the last step with this traffic
        curves.append(Curve(n, label, bits[last], values[:, last]))
    title = figures.title_of(y)
    log = "x" * all(bits > 0 for bits, _ in final.values())
    charts = [Chart(f"{title} against the traffic", "bits sent up", y, curves, log)]
    if len(runs) > 1:
        charts.append(_pareto(runs, final, y, f"{title} at the end against the traffic"))
    spent = {
        label: (final[label][0], float(each))
        for label, each in regrets.items()
        if isinstance(each, Regret)
    }
    if len(spent) > 1:
        charts.append(_pareto(runs, spent, "regret", "Regret at the end against the traffic"))
    rows = [
        {
            "algorithm": label,
            "MB up": float(np.mean(run.uplink_bytes[..., -1])) / 1e6,
            "MB down": float(np.mean(run.downlink_bytes[..., -1])) / 1e6,
            "uplink_saving": run.uplink_saving,
        }
        for label, run in runs.items()
    ]
    caption = "Traffic, as packed; the saving is against all clients sending plainly at every step"
    return Section("communication", "Communication", charts, tables=[for_page(rows, caption)])


def _pareto(
    runs: Iterable[str], ends: Mapping[str, tuple[float, float]], y: str, title: str
) -> Chart:
    """A point for each run, and in words the runs that no other beats in both."""
    front = figures.front(list(ends.values()), y in figures.HIGHER)
    best = ", ".join(label for label, end in ends.items() if end in front)
    curves = [
        Curve(n, label, np.array([ends[label][0]]), np.array([[ends[label][1]]]))
        for n, label in enumerate(runs)
        if label in ends
    ]
    note = f"Pareto front, no other run has less traffic and a better value: {best}."
    log = "x" * all(bits > 0 for bits, _ in ends.values())
    return Chart(title, "bits sent up", y, curves, log, note)
