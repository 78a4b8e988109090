"""Hubs in processes of their own, a private broker, and the learners of a run."""

import contextlib
import multiprocessing
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import mainstem as ms
from mainstem.engines.federate.broker import Private
from mainstem.engines.federate.charter import draw_up
from mainstem.engines.federate.host import host
from mainstem.engines.federate.learner import AsyncLearner

SPAWN = multiprocessing.get_context("spawn")
PATIENCE = 60.0  # seconds in which a hub must be there


@contextlib.contextmanager
def broker(sync: str) -> Iterator[str]:
    """The address of a private server; "2m" leaves syncing to the clock, "always" syncs every message."""
    with tempfile.TemporaryDirectory() as folder:
        server = Private(Path(folder), sync=sync)
        try:
            yield server.url
        finally:
            server.stop()


@contextlib.contextmanager
def process(serve: Callable[..., None], *arguments: object) -> Iterator[None]:
    """`serve(*arguments, ready)` in a process of its own, from when it is ready."""
    ready = SPAWN.Event()
    hub = SPAWN.Process(target=serve, args=(*arguments, ready), daemon=True)
    hub.start()
    try:
        if not ready.wait(PATIENCE):
            raise RuntimeError(f"{serve.__name__}: did not start")
        yield
    finally:
        hub.terminate()
        hub.join()


def hub(url: str, document: Mapping[str, Any], ready: Event) -> None:
    """A hub of ours, until the process is ended."""
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(KeyboardInterrupt):
        host(draw_up(document), Path(folder), url=url, started=lambda _: ready.set())


@contextlib.asynccontextmanager
async def joined(url: str, run: str, clients: int) -> AsyncIterator[list[AsyncLearner]]:
    """All clients of a run, as tasks of this process."""
    async with contextlib.AsyncExitStack() as stack:
        learners = []
        for k in range(clients):
            learner = await ms.join_async(url, run=run, client=str(k))
            learners.append(await stack.enter_async_context(learner))
        yield learners
