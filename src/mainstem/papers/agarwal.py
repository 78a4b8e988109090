"""FedRes's experiments (Agarwal, Langford and Wei 2020, Section 6): tasks from eight datasets.

    MAINSTEM_DATA=... python -m mainstem.papers.agarwal

prints the accuracies from which `SCALES` was chosen: held-out accuracy by AdaGrad's scale, 50 clients, no
delay, ten rollouts with seeds that no figure uses.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import mainstem as ms
from mainstem import parts
from mainstem.base import Algorithm, Problem, Stream
from mainstem.papers.result import Numbers
from mainstem.papers.runner import Runner

TOGETHER = ("mnist", "satimage", "sensorless", "usps")  # Central is better in the paper
APART = ("letter", "pendigits", "shuttle", "covtype")  # Independent is better in the paper
DATASETS = TOGETHER + APART
STEPS = 500
SCALES = {  # for Independent, Central and FedRes
    "mnist": (0.01, 0.03, 0.01),
    "satimage": (0.1, 0.3, 0.3),
    "sensorless": (0.3, 0.003, 0.3),
    "usps": (0.01, 0.1, 0.01),
    "letter": (0.3, 0.3, 0.3),
    "pendigits": (0.3, 0.3, 0.3),
    "shuttle": (1.0, 0.1, 0.3),
    "covtype": (0.1, 0.1, 0.3),
}
CHOSEN = (
    "Per-coordinate AdaGrad on squared loss, labels ±1, features in [0, 1] and a constant, in the place of "
    "Vowpal Wabbit --adaptive.",
    "AdaGrad's scale for each method and dataset: the best of 0.003, 0.01, 0.03, 0.1, 0.3 and 1 at 50 clients "
    "without delay, on ten rollouts that are not in the figure (python -m mainstem.papers.agarwal).",
    "Near the best is within two points of accuracy, modest within five.",
    "Sensorless: the 2,200 rows of the LIBSVM set that are in the cache, unless all of it is there.",
)


@functools.cache
def world(source: str, clients: int) -> tuple[Problem, Stream]:
    """Section 6.1: each client separates C0 from a class of its own; half the features are shared."""
    width = int(np.prod(ms.datasets.load(source).features.shape[1:]))
    problem = ms.problems.personal(width // 2, width - width // 2, classes=2, intercept=True)
    return problem, ms.streams.tasks(source, clients)


METHODS: dict[str, Callable[[float], Algorithm]] = {
    "Independent": lambda scale: ms.independent(parts.adagrad(scale)),
    "Central": lambda scale: ms.central(parts.adagrad(scale)),
    "FedRes": lambda scale: ms.fedres_sgd(parts.adagrad(scale)),
    "Central, on arrival": lambda scale: ms.central(parts.adagrad(scale), variant="on_arrival"),
    "FedRes, on arrival": lambda scale: ms.fedres_sgd(parts.adagrad(scale), variant="on_arrival"),
}


def scale_of(method: str, source: str) -> float:
    """AdaGrad's scale; both readings of a method use the same."""
    return SCALES[source][("Independent", "Central", "FedRes").index(method.partition(",")[0])]


def accuracy(
    runner: Runner,
    method: str,
    source: str,
    *,
    clients: int,
    seeds: int,
    delay: int = 0,
    scale: float | None = None,
) -> np.ndarray:
    """Balanced held-out accuracy of each rollout, averaged over its clients; half of the delay in each
    direction."""
    method = method if delay else method.partition(",")[0]  # without delay: one reading
    problem, stream = world(source, clients)
    settings: dict[str, Any] = {"steps": STEPS, "seeds": seeds, "measure": ()}
    if delay and method != "Independent":
        settings["network"] = ms.network(up=delay // 2, down=delay - delay // 2)
    algorithm = METHODS[method](scale_of(method, source) if scale is None else scale)
    run = runner.run(algorithm, problem, stream, **settings)
    return np.asarray(ms.measure.held_out(run)["correct"].mean(axis=1))


def swept(
    runner: Runner,
    *,
    datasets: Sequence[str],
    clients: Sequence[int],
    delays: Sequence[int],
    seeds: int,
    readings: bool,
) -> Numbers:
    """Accuracies [seeds, clients, delays] for each dataset and method."""
    methods = [name for name in METHODS if readings or "," not in name]
    numbers: Numbers = {"clients": np.array(clients), "delays": np.array(delays)}
    for source in datasets:
        for method in methods:
            found = [
                [
                    accuracy(runner, method, source, clients=count, delay=delay, seeds=seeds)
                    for delay in delays
                ]
                for count in clients
            ]
            numbers[f"{source}, {method}"] = np.moveaxis(np.array(found), -1, 0)
    return numbers


def at(
    numbers: Numbers, source: str, method: str, clients: int | None = None, delay: int | None = None
) -> np.ndarray:
    """Accuracy of each rollout; the first number of clients or delay if it is not given."""
    values = numbers[f"{source}, {method}"]
    row = 0 if clients is None else int(np.flatnonzero(numbers["clients"] == clients)[0])
    column = 0 if delay is None else int(np.flatnonzero(numbers["delays"] == delay)[0])
    return np.asarray(values[:, row, column])


def sources(numbers: Numbers) -> list[str]:
    """The datasets that were measured."""
    return [name for name in DATASETS if f"{name}, FedRes" in numbers]


# --- the choice of the scales ----------------------------------------------------------------------

TRIED = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


def main() -> None:
    """Prints accuracy by scale, and the best scale of each method."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(Path(folder), seed=10_000)
        for source in DATASETS:
            best = []
            for method in ("Independent", "Central", "FedRes"):
                found = {
                    scale: float(
                        accuracy(runner, method, source, clients=50, seeds=10, scale=scale).mean()
                    )
                    for scale in TRIED
                }
                best.append(max(found, key=lambda scale: found[scale]))
                cells = "".join(f"{scale:>7}: {value:.4f}" for scale, value in found.items())
                print(f"{source:12}{method:12}{cells}", flush=True)
            print(f'    "{source}": {tuple(best)},', flush=True)


if __name__ == "__main__":
    main()
