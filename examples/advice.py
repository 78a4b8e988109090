"""Test of `ms.advise`: ask for advice at 1 % of the uplink, then try ten step sizes by hand.

    python -m examples.advice [digits | room_occupancy | air_quality]...

1,000 clients, 500 steps, three seeds. The table lists the algorithms as `ms.advise` ranks them, with the
predicted and the measured regret. Below it, the advised algorithm with `step="auto"` is compared with the
best of a grid of ten step sizes. Digits are part of scikit-learn; the others need `mainstem data get` first
(or $MAINSTEM_DATA).
"""

import sys
import warnings

import numpy as np

import mainstem as ms
from mainstem import streams
from mainstem.base import Algorithm, Problem, Stream
from mainstem.errors import Diverged
from mainstem.spec import name_of

CLIENTS, STEPS, SEEDS, BUDGET = 1000, 500, 3, 0.01
GRID = np.geomspace(0.01, 10, 10)
NAMES = ("digits", "room_occupancy", "air_quality")


def world(name: str, clients: int = CLIENTS) -> tuple[Problem, Stream]:
    """A dataset as a problem and a stream: softmax for labels, a linear model for numbers."""
    if name == "digits":
        return ms.problems.softmax(64, 10), streams.digits(clients)
    stream = streams.dataset(name, clients)
    rows = stream.rows()
    features = rows.shown.shape[1]
    if np.issubdtype(rows.hidden.dtype, np.integer):
        return ms.problems.softmax(features, int(rows.hidden.max()) + 1), stream
    return ms.problems.linear(features), stream


def score(algorithm: Algorithm, problem: Problem, stream: Stream) -> float:
    """Final accuracy(t), or MSE(t): means over all clients and steps."""
    run = ms.simulate(algorithm, problem, stream, steps=STEPS, seeds=SEEDS, measure=())
    found = run.accuracy if "correct" in run.columns else run.mse
    return float(found[:, -1].mean())


def again(algorithm: Algorithm, step: float | str) -> Algorithm:
    """The same algorithm with another step size."""
    return algorithm.replace(step=step)


def ranked(name: str) -> Algorithm:
    """Prints the predicted and the measured regret; returns the advised algorithm."""
    problem, stream = world(name)
    advice = ms.advise(problem, stream, budget=BUDGET, steps=STEPS)
    print(f"{name}\n{'':28}{'predicted':>10}{'measured':>10}   (regret, mean over clients)")
    for row in advice.rows:
        shared = row.algorithm.traits.decides_with_broadcast
        measure = () if shared else ("collective",)
        run = ms.simulate(row.algorithm, problem, stream, steps=STEPS, measure=measure)
        label = f"{name_of(row.algorithm)}, {100 * row.uplink_share:.1f} % up"
        print(f"  {label:26}{row.regret:10.4g}{float(run.regret()):10.4g}   {row.parameters}")
    return advice.best


def main(names: list[str]) -> bool:
    """Prints all tables; returns whether the automatic step size is good enough everywhere."""
    fine = True
    for name in names:
        best, (problem, stream) = ranked(name), world(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Diverged)  # the largest steps of the grid
            tried = [score(again(best, float(step)), problem, stream) for step in GRID]
        found = score(again(best, "auto"), problem, stream)
        larger = np.issubdtype(stream.rows().hidden.dtype, np.integer)  # accuracy
        top = np.nanmax(tried) if larger else np.nanmin(tried)
        ratio = found / top
        good = ratio >= 0.95 if larger else ratio <= 1.1
        fine &= bool(good)
        listed = ", ".join(f"{s:.3g}: {v:.4g}" for s, v in zip(GRID, tried, strict=True))
        print(f"  grid of ten steps: {listed}")
        print(
            f'  step="auto": {found:.4g}, {ratio:.3f} of the best: {"good" if good else "NOT good"}\n'
        )
    return fine


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:] or list(NAMES)) else 1)
