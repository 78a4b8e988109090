"""Duration of a round in lockstep: mainstem, the bare exchange, and the cost of syncing to disk."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import numpy as np

from benchmarks.federation import bare, processes
from mainstem.base import Sample
from mainstem.engines.federate.client.kernels import Kernels
from mainstem.engines.federate.client.state import ClientState, learn_together
from mainstem.engines.federate.protocol.messages import Broadcast, pack_upload
from mainstem.engines.federate.protocol.run_document import parse

SIZE = 1000  # entries of a model: 4 kB
TURNS, WARM = 5, 3
ROUNDS = {2: 60, 20: 40, 200: 12}  # rounds of each side in each turn, by number of clients
OURS, BARE, RAW = "mainstem", "bare JetStream on nats-py", "raw core NATS, nothing stored"
ALONE = "what our clients compute, no network"
RUNS = itertools.count()

Round = Callable[[], Awaitable[Any]]


def run_content(clients: int, **rules: object) -> dict[str, Any]:
    """A run of FedOGD on a linear model, with a unique name."""
    return {
        "problem": {"name": "linear", "features": SIZE - 1},
        "algorithm": {"name": "fedogd", "step": 1e-4},
        "federate": {"run": f"run-{next(RUNS)}", "clients": clients, **rules},
    }


def samples(clients: int) -> list[Sample]:
    """One sample for each client."""
    draw = np.random.default_rng(0)
    features = draw.normal(size=(clients, SIZE - 1)).astype(np.float32)
    return [
        Sample(x, np.float32(y)) for x, y in zip(features, draw.normal(size=clients), strict=True)
    ]


@contextlib.asynccontextmanager
async def ours(url: str, clients: int) -> AsyncIterator[Round]:
    """A round of a real run."""
    content, data = run_content(clients, pace="lockstep"), samples(clients)
    with processes.process(processes.hub, url, content):
        async with processes.joined(url, content["federate"]["run"], clients) as learners:
            yield lambda: asyncio.gather(
                *(learner.step_with(each) for learner, each in zip(learners, data, strict=True))
            )


@contextlib.asynccontextmanager
async def others(url: str, clients: int, stored: bool) -> AsyncIterator[Round]:
    """A round of the same messages without mainstem."""
    run, upload = f"bare-{next(RUNS)}", np.ones(SIZE, np.float32).tobytes()
    with processes.process(bare.hub, url, run, clients, SIZE, stored):
        async with bare.joined(url, run, clients, stored) as found:
            yield lambda: asyncio.gather(*(client.step(upload) for client in found))


def learning(clients: int) -> Round:
    """The computation of the clients in a round, without a network: learn, upload, download."""
    document, data = parse(run_content(clients, pace="lockstep")), samples(clients)
    kernels = Kernels(document)
    states = [ClientState(kernels, k) for k in range(clients)]
    model = np.zeros(SIZE, np.float32).tobytes()

    async def one() -> None:
        for upload in learn_together(states, data, uploads=True):
            assert upload is not None
            pack_upload(upload)
        step = states[0].step
        broadcast = Broadcast(document.digest, step, step, *np.full((2, clients), step), model)
        for state in states:
            state.receive(broadcast)

    return one


async def in_turn(sides: dict[str, Round], rounds: int) -> dict[str, np.ndarray]:
    """Seconds of every round of each side."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for step in sides.values():
        for _ in range(WARM):
            await step()
    for _ in range(TURNS):
        for name, step in sides.items():
            for _ in range(rounds):
                begin = time.perf_counter()
                await step()
                times[name].append(time.perf_counter() - begin)
    return {name: np.array(each) for name, each in times.items()}


def show(title: str, times: dict[str, np.ndarray]) -> None:
    """Prints each side's p50 and p99, and how many times longer the first side's median is than each other
    one's."""
    print(f"\n{title}")
    first = np.median(next(iter(times.values())))
    for n, (name, each) in enumerate(times.items()):
        ratio = f"   ratio {first / np.median(each):6.2f}" if n else ""
        half, most = 1e3 * np.percentile(each, [50, 99])
        print(f"  {name:44}{half:9.2f} ms p50{most:9.2f} ms p99{ratio}")


async def compared(quick: str, clients: int) -> None:
    """Compares mainstem, the bare exchange and the raw one, and measures the share of learning, which the
    others omit.

    All clients share one process here, so that their computing times add up; on separate machines they would
    not.
    """
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        sides = {
            OURS: await enter(ours(quick, clients)),
            BARE: await enter(others(quick, clients, True)),
            RAW: await enter(others(quick, clients, False)),
            ALONE: learning(clients),
        }
        times = await in_turn(sides, ROUNDS[clients])
    show(f"A round in lockstep, {clients} clients, 4 kB models", times)
    exchange = times[OURS] - np.median(times[ALONE])
    half, most = 1e3 * np.percentile(exchange, [50, 99])
    ratio = np.median(exchange) / np.median(times[BARE])
    result = f"{half:9.2f} ms p50{most:9.2f} ms p99   {ratio:.2f} times the bare one   (asked: at most 2)"
    print(f"  {'our exchange, less that computing':44}{result}")


async def synced(quick: str, safe: str, clients: int) -> None:
    """Mainstem on a NATS server that syncs every message to disk, and on one that does not."""
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        sides = {
            "mainstem, every message synced": await enter(ours(safe, clients)),
            "bare JetStream, every message synced": await enter(others(safe, clients, True)),
            "mainstem, synced every two minutes": await enter(ours(quick, clients)),
        }
        times = await in_turn(sides, ROUNDS[clients] // 2)
    show(f"The same with sync_interval: always, {clients} clients", times)


def main() -> None:
    """Measures rounds with 2, 20 and 200 clients, then the cost of syncing to disk with 2 and 20."""
    with processes.nats_server("2m") as quick, processes.nats_server("always") as safe:
        for clients in ROUNDS:
            asyncio.run(compared(quick, clients))
        for clients in (2, 20):
            asyncio.run(synced(quick, safe, clients))
