"""One of several hosts: `python -m tests.engines.on_hosts HOSTS HOST PORT FOLDER UP CASE...` simulates the cases
of the contract and stores what this host sees in FOLDER. With one host, nothing is connected."""

import contextlib
import sys
from pathlib import Path

import numpy as np

import mainstem as ms
from mainstem.engines.simulate import hosts
from tests.contract.cases import CASES

CLIENTS = 7
SETTINGS = {"steps": 13, "seed": 3, "dtype": "float64", "progress": False}


def store(name, folder, up):
    case = CASES[name]
    problem, stream = case.world(CLIENTS)[:2]
    for seeds in (1, 2):
        more = {"seeds": seeds} if seeds > 1 else {}
        network = ms.network(up=up, down=up // 2)
        run = ms.simulate(case.algorithm, problem, stream, network=network, **SETTINGS, **more)
        columns = {column: run.trace[column] for column in run.columns}
        models = {f"model {n}": each for n, each in enumerate(run.models.values())}
        np.savez(folder / f"{name}-{seeds}-{hosts.number()}.npz", **columns, **models)


if __name__ == "__main__":
    count, host, port, up = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[5])
    together = contextlib.nullcontext()
    if count > 1:
        together = hosts.connected(count, host, f"127.0.0.1:{port}")
    with together:
        for name in sys.argv[6:]:
            store(name, Path(sys.argv[4]), up)
