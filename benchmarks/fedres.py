"""Fifty rollouts of FedRes.SGD with AdaGrad on pendigits: 50 clients, T = 500 (Agarwal et al. 2020, 6.2).

All sides do the same per client-step: predict, record loss and accuracy, update. The NumPy loop runs
one rollout after the other in float64, its tuned form all at once in float32. Vowpal Wabbit learns one
client's stream at a time, with all features and no server; only its learning is timed, with examples parsed
beforehand. Tables and parsed examples are ready before the clock starts, for every side.
"""

import time
from collections.abc import Callable
from statistics import median

import numpy as np

from benchmarks import workloads
from benchmarks.peers import numpy_fedres, vw_fedres
from mainstem.base import Stream
from mainstem.errors import DataUnavailable

ROLLOUTS, CLIENTS, STEPS, SCALE, ROUNDS = 50, 50, 500, 0.1, 5
GOAL = "NumPy loop, rollout after rollout"


def main() -> None:
    """Prints the time per client-step of each side, measured in turn, and the ratios of the medians."""
    try:
        work = workloads.fedres(CLIENTS, STEPS, SCALE)
    except DataUnavailable as error:
        print(f"\nFedRes.SGD: not measured, {error}")
        return
    shared, own, labels = tables(work.stream)
    single = tuple(x.astype(np.float32) for x in (shared, own, labels))
    features = np.concatenate([shared[0, 0, :, :-1], own[0, 0, :, :-1]], axis=1)
    with vw_fedres.workspace() as vw:
        lines = vw_fedres.as_text(features, labels[0, 0])
        examples = vw_fedres.parse(vw, lines)
        whole = ROLLOUTS * CLIENTS * STEPS
        sides: dict[str, tuple[int, Callable[[], object]]] = {
            "mainstem": (whole, work.run("fedres", seeds=ROLLOUTS)),
            GOAL: (whole, lambda: numpy_fedres.rollouts(shared, own, labels, STEPS, SCALE)),
            "the same, tuned by hand, float32": (
                whole,
                lambda: numpy_fedres.tuned(*single, STEPS, SCALE),
            ),
            "Vowpal Wabbit, examples parsed": (
                STEPS,
                lambda: vw_fedres.learn(vw, examples, STEPS),
            ),
            "Vowpal Wabbit, from text": (STEPS, lambda: vw_fedres.learn_text(vw, lines, STEPS)),
        }
        found = timed(sides)
        vw_fedres.release(vw, examples)
    print(f"\nFedRes.SGD, {ROLLOUTS} rollouts, {CLIENTS} clients, T = {STEPS}, pendigits")
    for name, each in found.items():
        goal = "   (asked: at least 20)" if name == GOAL else ""
        ratio = each / found["mainstem"]
        print(f"  {name:44}{1e9 * each:10.1f} ns/client-step   ratio {ratio:6.2f}{goal}")


def timed(sides: dict[str, tuple[int, Callable[[], object]]]) -> dict[str, float]:
    """Seconds per client-step, the median of `ROUNDS` rounds after a first call."""
    for _, action in sides.values():
        action()
    rounds: list[dict[str, float]] = []
    for _ in range(ROUNDS):
        rounds.append({})
        for name, (count, action) in sides.items():
            begin = time.perf_counter()
            action()
            rounds[-1][name] = (time.perf_counter() - begin) / count
    return {name: median(each[name] for each in rounds) for name in sides}


def tables(stream: Stream) -> tuple[np.ndarray, ...]:
    """(shared features and a 1, own features and a 1, labels -1 and 1), [rollouts, clients, n, ...]."""
    drawn = [stream.drawn(seed).cycle for seed in range(ROLLOUTS)]
    parts_ = []
    for name in ("shared", "own"):
        table = np.stack([getattr(each, name).swapaxes(0, 1) for each in drawn])
        parts_.append(np.concatenate([table, np.ones((*table.shape[:-1], 1))], axis=-1))
    return *parts_, np.stack([2.0 * each.labels.T - 1 for each in drawn])
