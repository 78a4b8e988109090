"""Simulator benchmark on a device (`make bench-gpu`): speed beside PyTorch, pfl-research and bare JAX.

Every side does the same work in the same run. Each call ends when all is computed and the models are on the
host; long columns of losses stay on the device, on every side that computes there. The first call, which compiles,
is not counted. `--small` runs anywhere. All rows end within 8 minutes on an H200.
"""

import os

# Half of the device's memory is left to PyTorch and to the processes that measure memory.
os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.5")

from benchmarks import (
    cifar,
    command,
    elec2,
    fedomd,
    logistic,
    memory,
    networks,
    scaling,
)

BENCHMARKS = {
    "fedomd": fedomd.many_seeds,
    "mlp": networks.mlp,
    "rows": logistic.main,
    "cnn": networks.cnn,
    "cifar": cifar.main,
    "elec2": elec2.main,
    "memory": memory.on_gpu,
    "scaling": scaling.main,
}

if __name__ == "__main__":
    command.main(__doc__, BENCHMARKS)
