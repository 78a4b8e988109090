"""Clients in a report: how losses and metrics are distributed over them, and the best and the worst."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mainstem.report.tables import for_page
from mainstem.run import trace as traces
from mainstem.run.reporting.charts import Section, in_order, mean_of_known, texts
from mainstem.run.run import Run

EXTREMES = 5  # clients that are listed at each end
TITLES = {"correct": "accuracy", "squared_error": "mse", "loss": "mean_loss"}


class Means(NamedTuple):
    """What was recorded of each client, as means over the seeds and the steps with a sample."""

    every: int  # of the steps, it was every n-th
    of: dict[str, np.ndarray]  # by column, [clients]; NaN for one that never had a sample


def clients(runs: Mapping[str, Run]) -> Section:
    """The losses and metrics of the clients, where they were recorded."""
    found = {label: each for label, run in runs.items() if (each := _means(run)) is not None}
    if not found:
        why = 'Nothing was recorded of each client: simulate(..., measure=["default", "clients"]).'
        return Section("clients", "Clients", [], [why])
    numbers = {label: n for n, label in enumerate(runs)}
    charts = []
    for name in dict.fromkeys(name for each in found.values() for name in each.of):
        means = {
            (numbers[label], label): each.of[name]
            for label, each in found.items()
            if name in each.of
        }
        charts.append(in_order(_title(name), _title(name), means))
    lists = [_ends(label, runs[label], each) for label, each in found.items()]
    thinned = {
        label: f"means over every n-th step, n = {each.every}"
        for label, each in found.items()
        if each.every > 1
    }
    return Section("clients", "Clients", charts, texts(thinned), lists)


def _means(run: Run) -> Means | None:
    """The means of the run's clients; None without their losses."""
    columns = {name: each for name in run.trace if (each := traces.per_client(name)) is not None}
    every = min((each.every for each in columns.values() if each.of == "loss"), default=None)
    if every is None:
        return None
    names = {each.of: name for name, each in columns.items() if each.every == every}
    wanted = [each for each in traces.OF_CLIENTS if each in names]
    return Means(every, {each: mean_of_known(run.trace[names[each]], (0, 1)) for each in wanted})


def _title(name: str) -> str:
    return TITLES.get(name, name).replace("_", " ").replace("mse", "mean squared error")


def _ends(label: str, run: Run, found: Means) -> dict[str, object]:
    """The clients with the least and the greatest loss, as a table."""
    losses, names = found.of["loss"], run.summary.names
    order = np.argsort(losses)
    known = order[np.isfinite(losses[order])]
    ends = [*known[:EXTREMES], *known[max(EXTREMES, len(known) - EXTREMES) :]]
    rows = [
        {"client": int(k) if names is None else names[k]}
        | {TITLES.get(name, name): float(means[k]) for name, means in found.of.items()}
        for k in ends
    ]
    few = len(known) <= 2 * EXTREMES
    what = (
        "the clients, by their loss" if few else "the clients with the least and the greatest loss"
    )
    return for_page(rows, f"{label}: {what}")
