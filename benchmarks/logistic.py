"""FedOGD with logistic regression: millions of clients on rows of a table, beside bare JAX."""

from collections.abc import Iterator

from benchmarks import limits, workloads
from benchmarks.compare import PER_STEP, Result, Row, Setting, Side, compare, ready
from benchmarks.peers import jax_rows

FEATURES = 10
SIZES = {1_000_000: (400, 0.25), 10_000_000: (100, 2.0)}  # clients: steps, goal in ms/step


def main(setting: Setting) -> Iterator[Result]:
    """A million and ten million clients; each step is a pass over the table in a new order."""
    sizes = {10_000: (5, None)} if setting.small else SIZES
    for clients, (steps, goal) in sizes.items():
        work = workloads.rows(clients, steps, FEATURES)
        table, labels = work.data
        sides = [
            Side("mainstem", ready(work.run("fedogd", measure=()))),
            Side(
                "bare JAX, rows by a keyed permutation",
                ready(
                    lambda x=table, y=labels, k=clients, t=steps: jax_rows.fedogd(x, y, k, t, 0.5)
                ),
            ),
        ]
        title = f"FedOGD, logistic({FEATURES}) on a table, {clients:,} clients"
        cost = limits.logistic(FEATURES, clients)
        yield compare(Row(f"rows-{clients}", title, PER_STEP, steps, sides, cost, goal), setting)
