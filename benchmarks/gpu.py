"""Simulator benchmark on a device (`make bench-gpu`): speed beside PyTorch, pfl-research and bare JAX.

Every side does the same work in the same run. Each call ends when its results are on the host; the first one,
which compiles, is not counted. `--small` runs anywhere. All rows end within 8 minutes on an H200.
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
    "rows": logistic.main,
    "cnn": networks.cnn,
    "mlp": networks.mlp,
    "cifar": cifar.main,
    "elec2": elec2.main,
    "memory": memory.on_gpu,
    "scaling": scaling.main,
}

if __name__ == "__main__":
    command.main(__doc__, BENCHMARKS)
