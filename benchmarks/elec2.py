"""Real data, one sample at a time: elec2 with logistic regression, beside River and Vowpal Wabbit.

River's samples are dictionaries, and Vowpal Wabbit's are parsed, before the clock starts. With 1,000 streams,
River has 1,000 models; Vowpal Wabbit learns all samples with one model, and only its time counts.
"""

from collections.abc import Iterator
from typing import Any

from benchmarks import limits, workloads
from benchmarks.compare import EXAMPLES, Action, Result, Row, Setting, Side, compare, ready

STEP, STREAMS = 0.1, 1_000
ROWS = 45_312


def main(setting: Setting) -> Iterator[Result]:
    """Examples per second, with one stream and with 1,000."""
    steps = 2_000 if setting.small else ROWS
    work = workloads.elec2(1, steps)
    features, labels = (each[:steps] for each in work.data)
    sides = [
        Side("mainstem", ready(work.run("fedogd"))),
        Side("River, learn_one", lambda: _river(features, labels, "learn"), ratio=100),
        Side(
            "River, predict_one and learn_one",
            lambda: _river(features, labels, "predict_and_learn"),
        ),
        *_vowpal_wabbit(features, labels),
    ]
    title = f"elec2, logistic, one stream of {steps:,} samples"
    cost = limits.elec2(6)
    yield compare(Row("elec2-1", title, EXAMPLES, steps, sides, cost), setting)
    clients, steps = (50, 20) if setting.small else (STREAMS, 2_000)
    work, total = workloads.elec2(clients, steps), float(clients * steps)
    count = float(len(features) // clients * clients)
    sides = [
        Side("mainstem, a model for each stream", ready(work.run("independent", measure=()))),
        Side("mainstem, FedOGD: one model for all", ready(work.run("fedogd"))),
        Side(
            "River, learn_one",
            lambda: _river(features, labels, "learn", clients),
            work=count,
            ratio=100,
        ),
        Side(
            "River, predict_one and learn_one",
            lambda: _river(features, labels, "predict_and_learn", clients),
            work=count,
        ),
        *_vowpal_wabbit(features, labels),
    ]
    title = f"elec2, logistic, {clients:,} streams"
    yield compare(Row(f"elec2-{clients}", title, EXAMPLES, total, sides, cost), setting)


def _river(features: Any, labels: Any, how: str, count: int = 1) -> Action:
    """Each of `count` models learns its own consecutive samples."""
    from benchmarks.peers import river_elec2 as river

    samples, each = river.examples(features, labels), len(features) // count
    shares = [samples[k * each : (k + 1) * each] for k in range(count)]
    river.models(1, STEP)  # imports
    act = getattr(river, how)

    def run() -> object:
        pairs = zip(river.models(count, STEP), shares, strict=True)
        return [act(model, share) for model, share in pairs]

    return run


def _vowpal_wabbit(features: Any, labels: Any) -> list[Side]:
    """Vowpal Wabbit, with and without parsing; its workspace lives as long as the process."""
    from benchmarks.peers import vw_fedres as vw

    flags = f"--loss_function logistic --sgd --learning_rate {STEP} --quiet"
    lines = vw.as_text(features, 2.0 * labels - 1)

    def parsed() -> Action:
        workspace = vw.workspace(flags)
        examples = vw.parse(workspace, lines)
        return lambda: vw.learn(workspace, examples, len(examples))

    def text() -> Action:
        workspace = vw.workspace(flags)
        return lambda: vw.learn_text(workspace, lines, len(lines))

    return [
        Side("Vowpal Wabbit, examples parsed", parsed, work=float(len(lines))),
        Side("Vowpal Wabbit, from text", text, work=float(len(lines))),
    ]
