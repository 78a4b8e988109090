"""A hub and its clients in one event loop, on a real server: quick enough for many tests."""

import asyncio
import contextlib
import itertools

import mainstem as ms
from mainstem.engines.federate import broker
from mainstem.engines.federate.charter import draw_up
from mainstem.engines.federate.hub import Hub

RUNS = itertools.count()
SOFTMAX = {"name": "softmax", "features": 64, "classes": 10}


def document(algorithm, problem=SOFTMAX, *, clients=2, **rules):
    """A run's document with a name of its own."""
    federate = {"run": f"run-{next(RUNS)}", "clients": clients, **rules}
    return {"problem": problem, "algorithm": algorithm, "federate": federate}


@contextlib.asynccontextmanager
async def serving(url, content, folder=None):
    """A hub at work; its charter is `hub.charter`."""
    connection = await broker.connect(url)
    hub = Hub(draw_up(content), connection, folder=folder)
    await hub.open()
    work = asyncio.create_task(hub.serve())
    try:
        yield hub, work
    finally:
        hub.stop()
        await work
        await connection.close()


async def joined(url, hub, client, **options):
    return await ms.join_async(url, run=hub.charter.rules.run, client=client, **options)


async def until(ready, patience=20.0):
    """Wait until `ready()`."""
    end = asyncio.get_running_loop().time() + patience
    while not ready():
        assert asyncio.get_running_loop().time() < end, "it did not come to pass"
        await asyncio.sleep(0.01)
