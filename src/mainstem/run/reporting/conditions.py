"""Conditions in a report: the delays of messages, and the heterogeneity of the stream."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from mainstem.errors import MainstemError
from mainstem.measure import Estimate, Prefix, heterogeneity, spread
from mainstem.report.tables import for_page
from mainstem.run.reporting.charts import Chart, Curve, Section, in_order, mean_of_known, texts
from mainstem.run.run import Run

SAMPLES = 100_000  # for which the heterogeneity of a stream is computed, at most
TRIPS = 1_000_000  # messages whose way is followed, at most
ESTIMATED = 10_000  # samples from whose gradients heterogeneity is estimated, at most
WORK = 3e7  # numbers in these gradients, at most: they take a second
LEAST = 4  # steps that an estimate needs


def conditions(runs: Mapping[str, Run]) -> Section:
    """Delays, and the heterogeneity of the stream."""
    statements = texts({label: _delays(run) for label, run in runs.items()})
    trips = {label: each for label, run in runs.items() if (each := _trips(run)) is not None}
    charts: list[Chart] = []
    tables: list[dict[str, Any]] = []
    if trips:
        charts.append(_sorted_trips(list(runs), trips))
        tables.append(_trip_table(trips))
    found = _heterogeneity(*next(iter(runs.items())))
    if isinstance(found, Chart):
        charts.append(found)
    elif isinstance(found, str):
        statements.append(f"Heterogeneity: {found}.")
    else:
        tables.append(found)
    return Section("conditions", "Delays and heterogeneity", charts, statements, tables)


# --- delays ---------------------------------------------------------------------------------------


def _delays(run: Run) -> str:
    """The delays that were set."""
    ways = _ways(run)
    if ways is None:
        return "no delays"
    each = [
        f"{name} {d.min()} to {d.max()} steps (median {np.median(d):g})" for name, d in ways.items()
    ]
    both = int(np.max(ways["up"] + ways["down"]))
    return f"messages take {', '.join(each)}; and back after at most {both}, at a sync"


def _ways(run: Run) -> dict[str, np.ndarray] | None:
    """The delays up and down [clients]; None if there are none."""
    network = run.spec["simulate"].get("network")
    if not network:
        return None
    clients = run.summary.clients
    return {n: np.broadcast_to(np.asarray(network.get(n, 0)), clients) for n in ("up", "down")}


class Trips(NamedTuple):
    """The ways of the messages of a run, in steps [messages, clients]; NaN for one under way at the end."""

    up: np.ndarray  # from the step that it was sent to its merge: its staleness
    down: np.ndarray  # from there to the download of a broadcast with it


def _trips(run: Run) -> Trips | None:
    """The ways of messages, from the syncs of the run and the delays of its links; None without delays."""
    ways, algorithm, steps = _ways(run), run.algorithm, run.summary.steps
    if ways is None or algorithm is None:
        return None
    syncs = np.flatnonzero(algorithm.sync.after(np.arange(1, steps + 1))) + 1
    if not syncs.size:
        return None
    most = max(2, TRIPS // run.summary.clients)
    sent = syncs[:: -(-len(syncs) // most), None]
    merged = _served(syncs, sent + ways["up"])
    back = _served(syncs, merged + ways["down"])
    return Trips(merged - sent, back - merged)


def _served(syncs: np.ndarray, due: np.ndarray) -> np.ndarray:
    """The first sync at or after each step; NaN if there is none."""
    known = np.append(syncs.astype(float), np.nan)
    return np.asarray(np.where(np.isnan(due), np.nan, known[np.searchsorted(syncs, due)]))


def _sorted_trips(labels: list[str], trips: Mapping[str, Trips]) -> Chart:
    """The clients in the order of their mean round trips, a curve for each run."""
    means = {
        (labels.index(label), label): mean_of_known(each.up + each.down, 0)
        for label, each in trips.items()
    }
    note = "From a message to a broadcast with it, mean over the messages that came back."
    return in_order("round trip", "steps", means, note)


def _trip_table(trips: Mapping[str, Trips]) -> dict[str, Any]:
    rows = []
    for label, each in trips.items():
        ways = {
            "up: staleness at its merge": each.up,
            "down: from its merge to its sender": each.down,
            "round trip": each.up + each.down,
        }
        for name, way in ways.items():
            known = way[~np.isnan(way)]
            if known.size:
                found = {"least": known.min(), "median": np.median(known), "mean": known.mean()}
                found |= {"90 %": np.quantile(known, 0.9), "greatest": known.max()}
                rows.append({"algorithm": label, "message": name} | _floats(found))
    return for_page(rows, "Steps that messages were under way, over clients and syncs")


def _floats(found: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(each) for name, each in found.items()}


# --- heterogeneity --------------------------------------------------------------------------------


def _heterogeneity(label: str, run: Run) -> Chart | dict[str, Any] | str:
    """That of a stream that knows its distributions, an estimate for another one, or why it is not shown."""
    size = run.summary
    if run.stream is None or run.problem is None or run.domain is None:
        return "the run's data or code is not on this machine"
    try:
        if run.stream.expected is None:
            return _estimated(label, run)
        if size.steps * size.clients > SAMPLES:
            return f"not computed for more than {SAMPLES} samples"
        return _exact(_prefix(run, size.steps), size.steps)
    except MainstemError as error:
        return str(error)


def _prefix(run: Run, steps: int) -> Prefix:
    assert run.problem is not None
    assert run.stream is not None
    return Prefix(run.problem, run.stream, steps, seed=run.summary.seeds[0], domain=run.domain)


def _exact(prefix: Prefix, steps: int) -> Chart:
    found = heterogeneity(prefix)
    parts = {"noise": found.noise, "clients": found.spatial, "time": found.temporal}
    t = np.arange(1, steps + 1)
    curves = [Curve(n, name, t, each[None]) for n, (name, each) in enumerate(parts.items())]
    note = "Noise of the samples, difference between clients, change with time: Sahu et al. 2026."
    return Chart("heterogeneity of the stream", "step t", "square", curves, note=note)


def _estimated(label: str, run: Run) -> dict[str, Any] | str:
    """Noise and difference between clients, from the gradients of the first samples at the final model."""
    size, model = run.summary, np.atleast_2d(run.models["server"])[0]
    steps = min(size.steps, max(LEAST, ESTIMATED // size.clients))
    if steps < LEAST:
        return f"an estimate needs {LEAST} steps"
    if len(model) != size.parameters:
        return "not estimated where clients have an own part of the model"
    if not np.isfinite(model).all():
        return "not estimated: the model is not finite"
    if steps * size.clients * size.parameters > WORK:
        return "not estimated, it takes a while: ms.measure.spread(ms.measure.Prefix(problem, stream, steps))"
    found = spread(_prefix(run, steps), model)
    rows = [
        _row("noise of the samples", found.noise),
        _row("difference between clients", found.spatial),
    ]
    where = f"squared distances of gradients at the final model of {label}"
    return for_page(rows, f"Heterogeneity, estimated from the first {steps} steps: {where}")


def _row(name: str, found: Estimate) -> dict[str, Any]:
    ends = {"low": found.low, "high": found.high}
    return {"of": name, "estimate": found.value} | {f"95 % {k}": each for k, each in ends.items()}
