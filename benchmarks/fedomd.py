"""FedOMD's experiment: one long run, fifty seeds, and thousands of seeds on a device."""

from collections.abc import Iterator
from typing import Any

from benchmarks import limits, workloads
from benchmarks.compare import CLIENT_STEPS, PER_STEP, Result, Row, Setting, Side, compare, ready
from benchmarks.peers import jax_fedomd, numpy_fedomd

CLIENTS = 20
UNROLLED = (
    1_000  # the number of seeds at which the unrolled scan is measured: it takes long to compile
)
GOALS = {1_000: 5e9, 10_000: 20e9}  # client-steps/s by the number of seeds


def on_cpu(setting: Setting) -> Iterator[Result]:
    """FedOMD's experiment at T = 100,000 beside NumPy, and fifty seeds of it."""
    work = workloads.fedomd()
    steps, few = (2_000, 200) if setting.small else (work.steps, 2_000)
    sides = [
        Side("mainstem", ready(work.run("fedomd", steps=steps))),
        Side(
            "NumPy loop, vectorised over clients",
            ready(lambda: numpy_fedomd.plain(steps)),
            ratio=30,
        ),
        Side("the same, tuned by hand", ready(lambda: numpy_fedomd.run(steps)), ratio=8),
    ]
    title = f"FedOMD's experiment, {CLIENTS} clients, T = {steps:,}"
    cost = limits.scaled(limits.fedomd(CLIENTS), CLIENTS)
    yield compare(Row("fedomd-long", title, PER_STEP, steps, sides, cost), setting)
    single = [work.run("fedomd", steps=few, seed=n) for n in range(50)]
    sides = [
        Side(
            "mainstem, fifty seeds as one program", ready(work.run("fedomd", steps=few, seeds=50))
        ),
        Side("mainstem, fifty runs", ready(lambda: [each() for each in single])),
    ]
    title = f"FedOMD's experiment, fifty seeds, T = {few:,}"
    cost = limits.scaled(cost, 50)
    yield compare(Row("fedomd-seeds", title, PER_STEP, few, sides, cost), setting)


def many_seeds(setting: Setting) -> Iterator[Result]:
    """Client-steps per second with 50, 1,000 and 10,000 seeds, beside bare JAX.

    Losses stay on the device, on both sides; two more sides of mainstem read them, or means of them.
    """
    steps, counts = (100, (5, 20)) if setting.small else (2_000, (50, 1_000, 10_000))
    work = workloads.fedomd()
    for seeds in counts:
        run = work.run("fedomd", steps=steps, seeds=seeds)
        blocks = work.run("fedomd", steps=steps, seeds=seeds, every=20)
        sides = [
            Side("mainstem", ready(run)),
            Side("mainstem, losses read on the host", ready(lambda run=run: run().loss)),
            Side(
                "mainstem, means of 20 steps read on the host",
                ready(lambda run=blocks: run().loss),
            ),
            _bare("bare JAX, scan", seeds, steps),
            _bare("bare JAX, whole rounds fused", seeds, steps, rounds=True),
        ]
        if seeds == UNROLLED:
            sides.append(_bare("bare JAX, scan unrolled by 20", seeds, steps, unroll=20))
        title = f"FedOMD's experiment, {CLIENTS} clients, {seeds:,} seeds, T = {steps:,}"
        total = float(seeds) * CLIENTS * steps
        row = Row(f"fedomd-{seeds}", title, CLIENT_STEPS, total, sides, limits.fedomd(CLIENTS))
        yield compare(row._replace(goal=GOALS.get(seeds)), setting)


def _bare(name: str, seeds: int, steps: int, **form: Any) -> Side:
    return Side(name, ready(lambda: jax_fedomd.run(seeds, steps, **form)))
