"""Scaling: client-steps per second of FedOGD with logistic regression, against clients, parameters and devices."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from statistics import median

import jax
import jax.numpy as jnp

import mainstem as ms
from benchmarks import machine, workloads
from benchmarks.compare import CLIENT_STEPS, Result, Setting, seconds
from mainstem import random

CLIENTS = tuple(10**n for n in range(1, 8))
PARAMETERS = tuple(10**n for n in range(1, 6))
DEVICES = (1, 2, 4, 8)
FEATURES, MANY = 10, 1_000
ONE = "import json, sys; from benchmarks import scaling; print(scaling.rate(*json.loads(sys.argv[1])))"


def main(setting: Setting) -> Iterator[Result]:
    """A row for each axis."""
    for name, points in (("clients", _clients), ("parameters", _parameters), ("devices", _devices)):
        sides = [{"name": f"{x:,}", "x": x, "value": value} for x, value in points(setting)]
        title = f"FedOGD, logistic regression: client-steps per second against {name}"
        yield {"row": f"scaling-{name}", "title": title, "unit": CLIENT_STEPS.name, "sides": sides}


def rate(clients: int, total: float, devices: int | None = None) -> float:
    """Client-steps per second with generated features, in a run of about so many client-steps."""
    steps = int(min(max(total / clients, 10), 2_000))
    stream = ms.streams.generated(_sample, clients=clients)
    return _rate(ms.problems.logistic(FEATURES), stream, clients, steps, devices)


def _sample(key: jax.Array, t: jax.Array, k: jax.Array) -> tuple[jax.Array, jax.Array]:
    x = random.normal(key, (FEATURES,))
    return x, (x[0] + x[1] > 0).astype(jnp.int32)


def _rate(
    problem: ms.problems.logistic, stream: object, clients: int, steps: int, devices: int | None
) -> float:
    def run() -> object:
        return ms.simulate(
            ms.fedogd(0.5), problem, stream, steps=steps, measure=(), devices=devices
        )

    run()
    return clients * steps / median(seconds(run) for _ in range(3))


def _total(setting: Setting) -> float:
    if setting.small:
        return 1e4
    return 1e9 if machine.on_gpu() else 1e7


def _clients(setting: Setting) -> Iterator[tuple[int, float]]:
    for clients in CLIENTS[:3] if setting.small else CLIENTS:
        yield clients, rate(clients, _total(setting))


def _parameters(setting: Setting) -> Iterator[tuple[int, float]]:
    for features in PARAMETERS[:2] if setting.small else PARAMETERS:
        work = workloads.rows(MANY, 1, features, count=200)
        steps = int(min(max(_total(setting) / features / MANY, 3), 1_000))
        yield features, _rate(work.problem, work.stream, MANY, steps, None)


def _devices(setting: Setting) -> Iterator[tuple[int, float]]:
    """On a CPU, each number of devices is measured in its own process; they share the cores."""
    clients, total = (1_000, 1e4) if setting.small else (100_000, _total(setting))
    on_gpu = machine.on_gpu()
    available = jax.device_count() if on_gpu else len(os.sched_getaffinity(0))
    for devices in (n for n in DEVICES if n <= available):
        if on_gpu:
            yield devices, rate(clients, total, devices)
            continue
        flags = f"--xla_force_host_platform_device_count={devices}"
        done = subprocess.run(
            [sys.executable, "-c", ONE, json.dumps([clients, total, devices])],
            env=os.environ | {"XLA_FLAGS": flags},
            capture_output=True,
            text=True,
            check=True,
        )
        yield devices, float(done.stdout.splitlines()[-1])
