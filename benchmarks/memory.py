"""Memory benchmark: constant in the number of steps, and millions of clients.

Each case runs in its own process and reports its peak: of the device's memory on a GPU, else of its resident size.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

from benchmarks import machine
from benchmarks.compare import MEMORY, Result, Setting, measured

HORIZON = """
import importlib.util, tempfile, mainstem as ms
algorithm = ms.fedomd(
    ms.parts.inverse_time(2.0), mirror=ms.parts.euclidean(ms.parts.box(-3, 3)), sync=ms.parts.every(20))
with tempfile.TemporaryDirectory() as folder:
    written = importlib.util.find_spec("pyarrow") is not None
    run = ms.simulate(
        algorithm, ms.problems.quadratic(low=-3, high=3), ms.streams.alternating(20), steps={steps},
        **dict(folder=folder + "/run", checkpoint=1.0) if written else {{}})
"""
NETWORK = """
from benchmarks import workloads
workloads.mlp(1000, {steps}).run("fedogd")()
"""
CLIENTS = """
import jax.numpy as jnp, mainstem as ms
from mainstem import random
def sample(key, t, k):
    x = random.normal(key, (10,))
    return x, (x[0] + x[1] > 0).astype(jnp.int32)
stream = ms.streams.generated(sample, clients={clients})
run = ms.simulate({algorithm}, ms.problems.logistic(10), stream, steps=20, measure=())
assert run.accuracy[-1] > 0.6, run.accuracy
"""
# Not `getrusage`: its peak is inherited from the process that starts this one.
PEAK = """
import jax
used = jax.devices()[0].memory_stats() or {}
status = next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]
print(used.get("peak_bytes_in_use", 1024 * int(status)))
"""


def peak(code: str) -> float:
    """The peak of a process that runs `code`, in MiB."""
    done = subprocess.run(
        [sys.executable, "-c", code + PEAK],
        env=os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no output"])[-1])
    return int(done.stdout.splitlines()[-1]) / 2**20


def main(setting: Setting) -> Iterator[Result]:
    """Peaks against the number of steps, and with a million clients."""
    horizons = (1_000, 10_000) if setting.small else (10_000, 1_000_000)
    yield from _flat("memory-steps", "FedOMD, 20 clients, trace written", HORIZON, horizons)
    yield _clients(100_000 if setting.small else 1_000_000)


def on_gpu(setting: Setting) -> Iterator[Result]:
    """The same on a device, also with a network, and with ten million clients."""
    short, long = (1_000, 4_000) if setting.small else (10_000, 200_000)
    yield from _flat("memory-steps", "FedOMD, 20 clients", HORIZON, (short, long))
    yield from _flat("memory-network", "MLP, 1,000 clients", NETWORK, (short // 100, long // 20))
    yield _clients(100_000 if setting.small else 10_000_000)


def _flat(name: str, title: str, code: str, horizons: tuple[int, int]) -> Iterator[Result]:
    cases = {f"T = {steps:,}": _case(code.format(steps=steps)) for steps in horizons}
    yield measured(name, f"Peak memory against T ({_where()}): {title}", MEMORY, cases)


def _clients(clients: int) -> Result:
    algorithms = ("ms.fedogd(0.5)", "ms.fedomd(0.5, sync=ms.parts.every(5))")
    cases = {
        name.removeprefix("ms."): _case(CLIENTS.format(algorithm=name, clients=clients))
        for name in algorithms
    }
    title = f"Peak memory ({_where()}): {clients:,} clients, logistic(10)"
    return measured("memory-clients", title, MEMORY, cases)


def _case(code: str) -> Callable[[], float]:
    return lambda: peak(code)


def _where() -> str:
    return "device" if machine.on_gpu() else "resident"
