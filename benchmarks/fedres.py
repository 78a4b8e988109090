"""Fifty rollouts of FedRes.SGD with AdaGrad on pendigits: 50 clients, T = 500 (Agarwal et al. 2020, 6.2).

All sides do the same per client-step: predict, record loss and accuracy, update. The NumPy loop runs
one rollout after the other in float64, its tuned form all at once in float32. Vowpal Wabbit learns one
client's stream at a time, with all features and no server; only its learning is timed, with examples parsed
beforehand. Tables and parsed examples are ready before the clock starts, for every side.
"""

from collections.abc import Iterator

import numpy as np

from benchmarks import workloads
from benchmarks.compare import PER_CLIENT_STEP, Action, Result, Row, Setting, Side, compare, ready
from benchmarks.peers import numpy_fedres, vw_fedres
from mainstem.base import Stream

ROLLOUTS, CLIENTS, STEPS, SCALE = 50, 50, 500, 0.1


def main(setting: Setting) -> Iterator[Result]:
    """The time per client-step of each side."""
    steps = 20 if setting.small else STEPS
    work = workloads.fedres(CLIENTS, steps, SCALE)
    shared, own, labels = tables(work.stream)
    single = tuple(x.astype(np.float32) for x in (shared, own, labels))
    features = np.concatenate([shared[0, 0, :, :-1], own[0, 0, :, :-1]], axis=1)
    lines = vw_fedres.as_text(features, labels[0, 0])

    def parsed() -> Action:
        vw = vw_fedres.workspace()
        examples = vw_fedres.parse(vw, lines)
        return lambda: vw_fedres.learn(vw, examples, steps)

    def text() -> Action:
        vw = vw_fedres.workspace()
        return lambda: vw_fedres.learn_text(vw, lines, steps)

    sides = [
        Side("mainstem", ready(work.run("fedres", seeds=ROLLOUTS))),
        Side(
            "NumPy loop, rollout after rollout",
            ready(lambda: numpy_fedres.rollouts(shared, own, labels, steps, SCALE)),
            ratio=20,
        ),
        Side(
            "the same, tuned by hand, float32",
            ready(lambda: numpy_fedres.tuned(*single, steps, SCALE)),
            ratio=1.5,
        ),
        Side("Vowpal Wabbit, examples parsed", parsed, work=steps),
        Side("Vowpal Wabbit, from text", text, work=steps),
    ]
    title = f"FedRes.SGD, {ROLLOUTS} rollouts, {CLIENTS} clients, T = {steps}, pendigits"
    total = float(ROLLOUTS * CLIENTS * steps)
    yield compare(Row("fedres", title, PER_CLIENT_STEP, total, sides), setting)


def tables(stream: Stream) -> tuple[np.ndarray, ...]:
    """(shared features and a 1, own features and a 1, labels -1 and 1), [rollouts, clients, n, ...]."""
    drawn = [stream.drawn(seed).cycle for seed in range(ROLLOUTS)]
    parts_ = []
    for name in ("shared", "own"):
        table = np.stack([getattr(each, name).swapaxes(0, 1) for each in drawn])
        parts_.append(np.concatenate([table, np.ones((*table.shape[:-1], 1))], axis=-1))
    return *parts_, np.stack([2.0 * each.labels.T - 1 for each in drawn])
