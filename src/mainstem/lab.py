"""Experiments: run every algorithm of a file or of the demo, and compare the runs."""

import copy
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from mainstem import algorithms, experiment, parts, problems, streams
from mainstem.advice import Advice, advise
from mainstem.base import Algorithm, Problem
from mainstem.engines.simulate import hosts, simulate, sweep
from mainstem.errors import BadSpec, BrokenRun
from mainstem.experiment import Experiment
from mainstem.report import figures, tables
from mainstem.run import Run, Sweep, compare, load
from mainstem.run.labels import labels
from mainstem.run.run import CURVES
from mainstem.spec import digest, name_of, plain
from mainstem.theory import plan
from mainstem.tracking.opening import Asked

Rows = list[dict[str, Any]]

REPORT = "report.html"  # in the folder of the runs
MEASURED = ["default", "clients"]  # where the file does not say: the report shows each client
MATTER = (
    "steps",
    "seed",
    "seeds",
    "network",
    "dtype",
    "measure",
    "weights",
    "every",
)  # to the numbers of a run


def run_file(
    path: Path,
    changes: Iterable[str],
    folder: Path,
    y: str | None = None,
    x: str | None = None,
    track: Asked = None,
) -> tuple[Rows, Path]:
    """Runs an experiment file; returns its table and the path of its figure, which shows `y` over `x`.

    Runs, figure and table (CSV and LaTeX) are saved inside `folder`.
    """
    changes = list(changes)
    asked = experiment.read(path, changes)
    if "steps" not in asked.settings:
        raise BadSpec(f"{path}: [simulate] needs steps")
    asked.settings.setdefault("measure", MEASURED)
    places = [folder / _named(asked, algorithm) for algorithm in asked.algorithms]
    runs: list[Run] = []
    for algorithm, place in zip(asked.algorithms, places, strict=True):
        runs.append(
            simulate(
                *(algorithm, asked.problem, asked.stream),
                **asked.settings,
                folder=place,
                track=track,
            )
        )
        compared = compare(runs, y, x=x)  # refuses an unknown column after the first run
    figure = folder / "comparison.png"
    if hosts.first():
        figures.save(compared.figure, figure)
        compared.to_csv(figure.with_suffix(".csv"))
        compared.to_latex(figure.with_suffix(".tex"))
        command = _command("run", path, changes, y=y, x=x)
        compared.report(folder / REPORT, title=path.stem, command=command)
    rows = [row | {"folder": str(place)} for row, place in zip(compared, places, strict=True)]
    return rows, figure


SWEPT = (
    *("steps", "seed", "seeds", "network", "dtype", "measure", "checkpoint", "chunk", "devices"),
    "every",
)


def sweep_file(
    path: Path, changes: Iterable[str], folder: Path, y: str | None = None
) -> tuple[Sweep, Path]:
    """Runs the [sweep] of an experiment file; returns its result and the path of its figure.

    Runs, figure and table (CSV) are saved inside `folder`.
    """
    changes = list(changes)
    content = experiment.parsed(path, changes)
    grid = experiment.grid(content.pop("sweep", None), str(path))
    asked = experiment.build({**content, "algorithm": []}, str(path), algorithms_needed=False)
    experiment.known(f"{path}: [simulate]", "key", asked.settings, SWEPT)
    if "steps" not in asked.settings:
        raise BadSpec(f"{path}: [simulate] needs steps")

    def make(**point: Any) -> tuple[Algorithm, Problem, parts.network]:
        changed = copy.deepcopy(content)
        for key, given in point.items():
            experiment.put(changed, key, given, f"{path}: [sweep] {key}")
        return experiment.configured(changed, str(path))

    found = sweep(make, grid, asked.stream, y=y, folder=folder, **asked.settings)
    figure = folder / "sweep.png"
    if hosts.first():
        figures.save(found.figure, figure)
        (folder / "sweep.csv").write_text(tables.as_csv(found.rows))
        command = _command("sweep", path, changes, y=y)
        found.report(folder / REPORT, title=path.stem, command=command)
    return found, figure


def _command(name: str, path: Path, changes: Iterable[str], **options: str | None) -> str:
    """The command that runs a file with these changes again.

    >>> _command("run", Path("my file.toml"), ["simulate.steps=5"], y="loss", x=None)
    "mainstem run 'my file.toml' --set simulate.steps=5 --y loss"
    """
    given = [("set", each) for each in changes] + [*options.items()]
    words = [word for key, value in given if value is not None for word in (f"--{key}", value)]
    return shlex.join(["mainstem", name, str(path), *words])


def show_runs(folders: Iterable[Path]) -> Rows:
    """A row for each run in these folders, with its size and the last values of its curves."""
    places = [each for folder in folders for each in _runs_in(folder)]
    unfinished = [place for place in places if _is_unfinished(place)]
    if unfinished and len(unfinished) == len(places):
        raise BrokenRun(f"{unfinished[0]}: was not finished: run it again to resume")
    places = [place for place in places if place not in unfinished]
    runs = [load(place) for place in places]
    named = labels([run.spec for run in runs])
    rows = [_shown(name, run, place) for name, run, place in zip(named, runs, places, strict=True)]
    later = "unfinished: run it again to resume"
    return [*rows, *({"algorithm": later, "folder": str(place)} for place in unfinished)]


def report_runs(
    folders: Iterable[Path], path: Path, y: str | None, regret: bool | None, title: str
) -> Rows:
    """Writes the report of the finished runs in these folders to `path`; returns its table."""
    places = [each for folder in folders for each in _runs_in(folder)]
    several = len(places) > 1
    runs = [load(place) for place in places if not (several and _is_unfinished(place))]
    compared = compare(runs, y)
    compared.report(path, regret=regret, title=title)
    return list(compared)


def _runs_in(folder: Path) -> list[Path]:
    """The folder itself, if it has a run, or the runs inside it."""
    inside = sorted(each.parent for each in folder.glob("*/spec.toml"))
    return [folder] if (folder / "spec.toml").exists() or not inside else inside


def _is_unfinished(place: Path) -> bool:
    return (place / "spec.toml").exists() and not (place / "run.json").exists()


def _shown(name: str, run: Run, place: Path) -> dict[str, Any]:
    size = run.summary
    row: dict[str, Any] = {"algorithm": name, "steps": size.steps, "clients": size.clients}
    row |= {"seeds": len(size.seeds), "parameters": size.parameters, "dtype": size.dtype}
    row["mean_loss"] = float(np.mean(run.loss))
    for curve in ("accuracy", "mse", "auc", "uplink_bits"):
        if CURVES[curve] in run.trace:
            row[curve] = float(np.mean(run.curve(curve)[..., -1]))
    row |= {"diverged": run.diverged} if run.diverged else {}
    return row | {"folder": str(place)}


def _named(asked: Experiment, algorithm: Algorithm) -> str:
    """The name of a run's folder: the algorithm's, and a fingerprint of all that the run depends on."""
    settings = {name: each for name, each in asked.settings.items() if name in MATTER}
    content = plain([asked.problem, asked.stream, algorithm, settings])
    return f"{name_of(algorithm)}-{digest(content)[:8]}"


def advise_file(path: Path, changes: Iterable[str], budget: float, steps: int | None) -> Advice:
    """Advice for the problem and the stream of an experiment file."""
    asked = experiment.read(path, changes, algorithms_needed=False)
    steps = asked.settings.get("steps") if steps is None else steps
    if steps is None:
        raise BadSpec(f"{path}: [simulate] needs steps, or give --steps")
    seed = asked.settings.get("seed", 0)
    return advise(asked.problem, asked.stream, budget=budget, steps=steps, seed=seed)


def run_demo(folder: Path, steps: int) -> tuple[Rows, Path]:
    """Runs the demo, 1 % of the traffic at almost the same accuracy; returns its table and its figure's path."""
    problem = problems.softmax(features=64, classes=10)
    stream = streams.digits(clients=1000)
    budget = plan(budget=0.01, parameters=problem.parameters)
    chosen = {
        "FedOGD": algorithms.fedogd(step=0.5),
        "OFedIQ, planned for 1 %": algorithms.ofediq(
            step=0.5, rate=budget.rate, levels=budget.levels, blocks=budget.blocks
        ),
        "OFedAvg, 1 % of the clients": algorithms.ofedavg(step=0.5, rate=0.01),
        "FedOMD, every 100 steps": algorithms.fedomd(step=0.5, sync=parts.every(100)),
        "FedSEA, every 10 steps": algorithms.fedsea(step=0.5, period=10),
    }
    runs = {
        name: simulate(algorithm, problem, stream, steps=steps, seeds=3, measure=["clients"])
        for name, algorithm in chosen.items()
    }
    figure = figures.curves({name: run.accuracy for name, run in runs.items()}, "accuracy", log="x")
    compared, saved = compare(runs), figures.save(figure, folder / "accuracy.png")
    title, command = "Five algorithms on handwritten digits", f"mainstem demo --steps {steps}"
    compared.report(folder / REPORT, title=title, command=command)
    return list(compared), saved
