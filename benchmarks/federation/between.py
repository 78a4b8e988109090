"""Speed of a client between two syncs: a logistic model of six features, compared with River alone."""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from river import linear_model

import mainstem as ms
from benchmarks.federation import processes
from mainstem.engines.federate.client.learner import Learner

NAMES = (
    "nswprice",
    "nswdemand",
    "vicprice",
    "vicdemand",
    "transfer",
    "period",
)  # the features of elec2
ROWS, PAIRS, ROUNDS = 45_312, 4_000, 5
PERIOD = 10**6  # steps between two syncs: no sync occurs here
CONTENT = {
    "problem": {"name": "logistic", "features": len(NAMES)},
    "algorithm": {"name": "fedsea", "step": 0.01, "period": PERIOD},
    "federate": {"run": "between", "clients": 1, "features": list(NAMES)},
}
ONE, MANY = "mainstem, predict_one + learn_one", "mainstem, learn_many"
RIVER = "River, predict_one + learn_one"
GOALS = {ONE: "at least 4,000", MANY: "at least 100,000"}


def table() -> tuple[np.ndarray, np.ndarray]:
    """Samples of elec2's shape."""
    draw = np.random.default_rng(0)
    features = draw.uniform(size=(ROWS, len(NAMES))).astype(np.float32)
    return features, (features @ draw.normal(size=len(NAMES)) > 0).astype(np.int32)


def pairs(model: Any, xs: list[Any], ys: list[int]) -> None:
    """Predicts and then learns each sample in turn."""
    for x, y in zip(xs, ys, strict=True):
        model.predict_one(x)
        model.learn_one(x, y)


def block(learner: Learner, features: np.ndarray, labels: np.ndarray) -> float:
    """Learns all samples at once; the loss is available when all are learnt."""
    learner.learn_many(features, labels)
    return learner.loss


def rates(sides: dict[str, tuple[int, Callable[[], object]]]) -> dict[str, float]:
    """Samples per second of each side, the median of `ROUNDS` rounds after a first call."""
    for _, action in sides.values():
        action()
    found: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, (count, action) in sides.items():
            begin = time.perf_counter()
            action()
            found[name].append(count / (time.perf_counter() - begin))
    return {name: median(each) for name, each in found.items()}


def main() -> None:
    """Prints the rates of `predict_one` with `learn_one`, of `learn_many`, and of River."""
    features, labels = table()
    arrays, truth = list(features[:PAIRS]), labels[:PAIRS].tolist()
    dicts = [dict(zip(NAMES, row, strict=True)) for row in features[:PAIRS].tolist()]
    river = linear_model.LogisticRegression()
    with (
        processes.nats_server("2m") as url,
        processes.process(processes.hub, url, CONTENT),
        ms.join(url, run="between", client="0") as learner,
    ):
        found = rates(
            {
                ONE: (PAIRS, lambda: pairs(learner, dicts, truth)),
                "the same, arrays for dicts": (PAIRS, lambda: pairs(learner, arrays, truth)),
                MANY: (ROWS, lambda: block(learner, features, labels)),
                RIVER: (PAIRS, lambda: pairs(river, dicts, truth)),
            }
        )
    print("\nBetween syncs, a logistic model of six features, one client")
    for name, each in found.items():
        goal = f"   (asked: {GOALS[name]})" if name in GOALS else ""
        ratio = each / found[RIVER]
        print(f"  {name:44}{each:12,.0f} samples/s   ratio {ratio:6.2f}{goal}")
