"""Memory benchmark: constant in the number of steps, and a million clients. `python -m benchmarks.memory`

Each case runs in its own process and prints its peak resident size.
"""

import subprocess
import sys

HORIZON = """
import tempfile, mainstem as ms
algorithm = ms.fedomd(
    ms.parts.inverse_time(2.0), mirror=ms.parts.euclidean(ms.parts.box(-3, 3)), sync=ms.parts.every(20))
with tempfile.TemporaryDirectory() as folder:
    run = ms.simulate(
        algorithm, ms.problems.quadratic(low=-3, high=3), ms.streams.alternating(20),
        steps={steps}, folder=folder + "/run", checkpoint=1.0)
"""
CLIENTS = """
import jax.numpy as jnp, mainstem as ms
from mainstem import random
def sample(key, t, k):
    x = random.normal(key, (10,))
    return x, (x[0] + x[1] > 0).astype(jnp.int32)
stream = ms.streams.generated(sample, clients=1_000_000)
run = ms.simulate({algorithm}, ms.problems.logistic(10), stream, steps=20, measure=())
assert run.accuracy[-1] > 0.6, run.accuracy
"""
# Not `getrusage`: its peak is inherited from the process that starts this one.
PEAK = """
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


def peak(code: str) -> float:
    """Peak resident size of a process that runs `code`, in MiB."""
    done = subprocess.run(
        [sys.executable, "-c", code + PEAK], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return int(done.stdout.splitlines()[-1]) / 1024


def main() -> None:
    """Prints the table."""
    short, long = (peak(HORIZON.format(steps=steps)) for steps in (10_000, 1_000_000))
    print(f"FedOMD, 20 clients, trace written: {short:7.0f} MiB at T = 10,000")
    print(f"{'':33}  {long:7.0f} MiB at T = 1,000,000, {long / short:.2f} times (at most 1.10)")
    for name in ("ms.fedogd(0.5)", "ms.fedomd(0.5, sync=ms.parts.every(5))"):
        used = peak(CLIENTS.format(algorithm=name))
        print(f"1,000,000 clients, logistic, {name}: {used:7.0f} MiB (at most 6,144)")


if __name__ == "__main__":
    main()
