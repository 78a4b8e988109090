"""The CIFAR10 benchmark of pfl-research: 50 users with 50 images each, one local epoch in batches of 10.

The images are generated, and the network has no dropout. Every side but pfl also records loss and accuracy of the
broadcast on all images.
"""

from collections.abc import Iterator

from benchmarks import limits, workloads
from benchmarks.compare import PER_ROUND, Action, Result, Row, Setting, Side, compare, ready
from benchmarks.peers import jax_fedavg

BATCH, STEP, IMAGE = 10, 0.01, 32 * 32 * 3 + 1
PROCESSES = 5  # of pfl-research on one device


def main(setting: Setting) -> Iterator[Result]:
    """Milliseconds a round."""
    users, images, rounds = (2, 10, 1) if setting.small else (50, 50, 10)
    work = workloads.cifar(users, images, min(BATCH, images), rounds)

    def bare(vmapped: bool) -> Action:
        return lambda: jax_fedavg.fedavg(*work.data, rounds, BATCH, STEP, vmapped)

    def pfl() -> Action:
        from benchmarks.peers import pfl_fedavg

        return pfl_fedavg.fedavg(*work.data, rounds, BATCH, STEP)

    def processes() -> Action:
        from benchmarks.peers import pfl_processes

        return pfl_processes.fedavg(*work.data, rounds, BATCH, STEP, min(PROCESSES, users))

    sides = [
        Side("mainstem", ready(work.run("dynamic_fedavg"))),
        Side("bare JAX, clients in turn", ready(bare(False))),
        Side("bare JAX, clients at once (vmap)", ready(bare(True))),
        Side("pfl-research, one process", pfl),
        Side(f"pfl-research, {PROCESSES} processes that do not communicate", processes),
    ]
    title = f"FedAvg, CNN of 1,626,442 parameters, {users} users with {images} images, batches of {BATCH}"
    cost = limits.fedavg(limits.CIFAR, users, images, BATCH, IMAGE)
    yield compare(Row("cifar", title, PER_ROUND, rounds, sides, cost, 30.0), setting)
