"""Processes of the benchmarks: hubs, a private NATS server, and the learners of a run."""

import contextlib
import multiprocessing
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import mainstem as ms
from mainstem.engines.federate.client.learner import AsyncLearner
from mainstem.engines.federate.hub.process import run_hub
from mainstem.engines.federate.own_thread import compute_in_own_thread
from mainstem.engines.federate.protocol.run_document import parse
from mainstem.engines.federate.transport.private_server import PrivateServer

SPAWN = multiprocessing.get_context("spawn")
PATIENCE = 60.0  # seconds within which a hub must start


@contextlib.contextmanager
def nats_server(sync: str) -> Iterator[str]:
    """The address of a private server; `sync` "2m": sync to disk every two minutes, "always": every message."""
    with tempfile.TemporaryDirectory() as folder:
        server = PrivateServer(Path(folder), sync=sync)
        try:
            yield server.url
        finally:
            server.stop()


@contextlib.contextmanager
def process(serve: Callable[..., None], *arguments: object) -> Iterator[None]:
    """Runs `serve(*arguments, ready)` in a separate process without an end, and yields when it is ready."""
    ready = SPAWN.Event()
    child = SPAWN.Process(target=serve, args=(*arguments, ready), daemon=True)
    child.start()
    try:
        if not ready.wait(PATIENCE):
            raise RuntimeError(f"{serve.__name__}: did not start")
        yield
        if not child.is_alive():
            raise RuntimeError(f"{serve.__name__}: has ended, with exit code {child.exitcode}")
    finally:
        child.terminate()
        child.join()


def hub(url: str, document: Mapping[str, Any], ready: Event) -> None:
    """Runs a hub of mainstem until the process is terminated."""
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(KeyboardInterrupt):
        run_hub(parse(document), Path(folder), url=url, started=lambda _: ready.set())


@contextlib.asynccontextmanager
async def joined(url: str, run: str, clients: int) -> AsyncIterator[list[AsyncLearner]]:
    """All clients of a run, as tasks of this process, which computes as that of `mainstem join`."""
    compute_in_own_thread()
    async with contextlib.AsyncExitStack() as stack:
        learners = []
        for k in range(clients):
            learner = await ms.join_async(url, run=run, client=str(k))
            learners.append(await stack.enter_async_context(learner))
        yield learners
