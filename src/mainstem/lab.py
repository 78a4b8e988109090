"""Experiments: run every algorithm of a file or of the demo, and compare the runs."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mainstem import algorithms, experiment, parts, problems, streams
from mainstem.advice import Advice, advise
from mainstem.engines.simulate import simulate
from mainstem.errors import BadSpec, FinishedRun
from mainstem.report import figures
from mainstem.run import compare, load
from mainstem.spec import name_of
from mainstem.theory import plan

Rows = list[dict[str, Any]]


def run_file(path: Path, changes: Iterable[str], folder: Path) -> tuple[Rows, Path]:
    """Runs an experiment file; returns its table and the path of its figure. Runs are saved inside `folder`."""
    asked = experiment.read(path, changes)
    if "steps" not in asked.settings:
        raise BadSpec(f"{path}: [simulate] needs steps")
    names = figures.distinct([name_of(each) for each in asked.algorithms])
    runs = []
    for name, algorithm in zip(names, asked.algorithms, strict=True):
        place = folder / name.replace(" ", "-")
        try:
            run = simulate(algorithm, asked.problem, asked.stream, folder=place, **asked.settings)
        except FinishedRun:
            run = load(place, stream=asked.stream)
        runs.append(run)
    compared = compare(runs)
    places = [str(folder / name.replace(" ", "-")) for name in names]
    rows = [row | {"folder": place} for row, place in zip(compared, places, strict=True)]
    return rows, figures.save(compared.figure, folder / "comparison.png")


def advise_file(path: Path, changes: Iterable[str], budget: float, steps: int | None) -> Advice:
    """Advice for the problem and the stream of an experiment file."""
    asked = experiment.read(path, changes, algorithms_needed=False)
    steps = asked.settings.get("steps") if steps is None else steps
    if steps is None:
        raise BadSpec(f"{path}: [simulate] needs steps, or give --steps")
    seed = asked.settings.get("seed", 0)
    return advise(asked.problem, asked.stream, budget=budget, steps=steps, seed=seed)


def run_demo(folder: Path) -> tuple[Rows, Path]:
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
        name: simulate(algorithm, problem, stream, steps=500, seeds=3, measure=())
        for name, algorithm in chosen.items()
    }
    figure = figures.curves({name: run.accuracy for name, run in runs.items()}, "accuracy", log="x")
    compared = compare(list(runs.values()))
    rows = [row | {"algorithm": name} for row, name in zip(compared, runs, strict=True)]
    return rows, figures.save(figure, folder / "accuracy.png")
