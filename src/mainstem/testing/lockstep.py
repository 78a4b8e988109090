"""Contract of algorithms over NATS: a hub and its clients in lockstep compute what `simulate` does."""

import asyncio
import contextlib
import secrets
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mainstem import replay
from mainstem.base import Algorithm
from mainstem.engines.federate.client.learner import join_async
from mainstem.engines.federate.hub.hub import Hub
from mainstem.engines.federate.protocol.run_document import parse
from mainstem.engines.federate.transport import connection as connections
from mainstem.engines.federate.transport.private_server import PrivateServer
from mainstem.engines.simulate import simulate
from mainstem.spec import plain
from mainstem.testing.algorithms import vector
from mainstem.testing.comparisons import same
from mainstem.testing.worlds import World, world_for

CLIENTS, STEPS, SEED = 5, 18, 3


def check_lockstep(
    algorithm: Algorithm,
    world: World | None = None,
    *,
    url: str | None = None,
    dtype: str = "float64",
    steps: int = STEPS,
    seed: int = SEED,
) -> None:
    """Runs a hub and its clients on a NATS server, and raises an `AssertionError` if they differ from `simulate`.

    Without a `url` it starts a private server. `world` is a problem and a stream. The run is in float64, to
    1e-9, unless `dtype` is "float32". A run document names the algorithm, so one of your own must be installed
    as a plugin.

    >>> import mainstem as ms
    >>> check_lockstep(ms.fedogd(step=0.1))
    """
    tried = world or world_for(algorithm, CLIENTS)
    if url is None:
        with tempfile.TemporaryDirectory() as folder:
            server = PrivateServer(Path(folder) / "server", sync="2m")
            try:
                check_lockstep(
                    algorithm, tried, url=server.url, dtype=dtype, steps=steps, seed=seed
                )
            finally:
                server.stop()
        return
    model, loss = asyncio.run(_lived(url, algorithm, tried, dtype, steps, seed))
    run = simulate(
        algorithm, tried.problem, tried.stream, steps=steps, seed=seed, dtype=dtype, measure=()
    )
    close = 1e-9 if dtype == "float64" else 2e-4
    same(model, vector(run.model), "the hub's model, and that of the simulation", close)
    same(loss, run.loss.sum(), "the losses of all steps, in lockstep and simulated", close)


async def _lived(
    url: str, algorithm: Algorithm, world: World, dtype: str, steps: int, seed: int
) -> tuple[np.ndarray, float]:
    """The hub's model, and the sum over the steps of the clients' mean loss."""
    clients = world.stream.clients
    rules = {"clients": clients, "pace": "lockstep", "seed": seed, "dtype": dtype, "steps": steps}
    rules |= {"guard": False}  # the algorithm as it is; `guarded` is one too
    name = f"lockstep-{secrets.token_hex(8)}"
    content = {
        "problem": plain(world.problem),
        "algorithm": plain(algorithm),
        "federate": rules | {"run": name},
    }

    async def live(k: int) -> float:
        async with await join_async(url, run=name, client=str(k)) as learner:
            for sample in replay.samples_at(world.stream, seed, k, 1, steps, dtype):
                await learner.step_with(sample)
            return float(learner.loss)

    async with serving(url, content) as (hub, _):
        losses = await asyncio.gather(*(live(k) for k in range(clients)))
        return hub.aggregator.model, sum(losses) / clients


@contextlib.asynccontextmanager
async def serving(
    url: str, content: Mapping[str, Any], folder: Path | None = None
) -> AsyncIterator[tuple[Hub, asyncio.Task[Any]]]:
    """A hub at work on a run document, and its task."""
    connection = await connections.connect(url)
    hub = Hub(parse(content), connection, folder=folder)
    await hub.open()
    work = asyncio.create_task(hub.serve())
    try:
        yield hub, work
    finally:
        hub.stop()
        try:
            await work
        finally:
            await connection.close()
