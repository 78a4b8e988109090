"""A hub and its clients in one event loop, on a real server: quick enough for many tests."""

import asyncio
import itertools

import mainstem as ms
from mainstem.testing.lockstep import serving

__all__ = ["joined", "run_content", "serving", "until"]

RUNS = itertools.count()
SOFTMAX = {"name": "softmax", "features": 64, "classes": 10}


def run_content(algorithm, problem=SOFTMAX, *, clients=2, **rules):
    """A run document with a unique name."""
    federate = {"run": f"run-{next(RUNS)}", "clients": clients, **rules}
    return {"problem": problem, "algorithm": algorithm, "federate": federate}


async def joined(url, hub, client, **options):
    return await ms.join_async(url, run=hub.document.rules.run, client=client, **options)


async def until(ready, patience=20.0):
    """Waits until `ready()`."""
    end = asyncio.get_running_loop().time() + patience
    while not ready():
        assert asyncio.get_running_loop().time() < end, "it did not happen in time"
        await asyncio.sleep(0.01)
