"""`ms.serve`: a hub inside a Python program, blocking or async."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any, Self

import jax
import numpy as np

from mainstem.engines.federate.hub import orders
from mainstem.engines.federate.hub.hub import Hub
from mainstem.engines.federate.hub.process import opened
from mainstem.engines.federate.hub.start_model import with_start
from mainstem.engines.federate.protocol.run_document import RunDocument, parse, read
from mainstem.engines.federate.transport.event_loop import BackgroundLoop
from mainstem.engines.federate.transport.opening import Opening
from mainstem.errors import MainstemError


class AsyncServedHub:
    """A hub at work, for programs with an event loop."""

    def __init__(self, hub: Hub, url: str, stack: contextlib.AsyncExitStack):
        self.url = url  # of the NATS server
        self._hub = hub
        self._stack = stack
        self._work = asyncio.create_task(hub.serve())

    def status(self) -> dict[str, Any]:
        """The state of the run, as `mainstem status` shows it."""
        return self._hub.status()

    @property
    def model(self) -> Any:
        """The merged model, in the form of the problem; its shared part, if clients have one of their own."""
        document = self._hub.document
        with document.precision():
            return jax.tree.map(
                np.asarray, document.problem.unravel_shared(self._hub.aggregator.model)
            )

    async def order(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Obeys an order of `mainstem order`: pause, resume, back, change and so on. Returns the status."""
        answer = await orders.obey(self._hub, name, arguments)
        if "refused" in answer:
            raise MainstemError(f"{self._hub.document.rules.run}: {answer['refused']}")
        return answer

    async def wait(self) -> None:
        """Waits until the run is finished."""
        await asyncio.shield(self._work)

    async def close(self) -> None:
        """Ends the hub after the current round, and writes the model to its folder."""
        self._hub.stop()
        try:
            await self._work
        finally:
            await self._stack.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


class ServedHub:
    """A hub at work, for programs without an event loop. It runs in a thread of its own."""

    def __init__(self, served: AsyncServedHub, background: BackgroundLoop):
        self._served = served
        self._background = background

    @property
    def url(self) -> str:
        """The address of the NATS server."""
        return self._served.url

    def status(self) -> dict[str, Any]:
        """The state of the run, as `mainstem status` shows it."""

        async def asked() -> dict[str, Any]:
            return self._served.status()

        found: dict[str, Any] = self._background.wait(asked())
        return found

    @property
    def model(self) -> Any:
        """The merged model, in the form of the problem; its shared part, if clients have one of their own."""

        async def asked() -> Any:
            return self._served.model

        return self._background.wait(asked())

    def order(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Obeys an order of `mainstem order`: pause, resume, back, change and so on. Returns the status."""
        found: dict[str, Any] = self._background.wait(self._served.order(name, **arguments))
        return found

    def wait(self) -> None:
        """Waits until the run is finished."""
        self._background.wait(self._served.wait())

    def close(self) -> None:
        """Ends the hub after the current round, and writes the model to its folder."""
        if self._background.running:
            try:
                self._background.wait(self._served.close())
            finally:
                self._background.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def serve(run: str | Path | dict[str, Any], *, folder: str | Path, **options: Any) -> ServedHub:
    """Serves a run from now on: `run` is its file, or the tables of it. Returns the hub, to be closed.

    `options`: `url` and `credentials` of a NATS server (default: a private one in `folder`), `replicas`,
    `metrics` and `dashboard` (each HOST:PORT), `track` as in `simulate`, and `wait`, the seconds to wait for the
    server.
    """
    background = BackgroundLoop("mainstem hub")
    try:
        served: AsyncServedHub = background.wait(_served(run, folder, options))
    except BaseException:
        background.close()
        raise
    return ServedHub(served, background)


def serve_async(
    run: str | Path | dict[str, Any], *, folder: str | Path, **options: Any
) -> Opening[AsyncServedHub]:
    """`serve` for programs with an event loop: ``async with ms.serve_async(...) as hub``, or with `await`."""
    return Opening(_served(run, folder, options))


async def _served(
    run: str | Path | dict[str, Any], folder: str | Path, options: dict[str, Any]
) -> AsyncServedHub:
    stack = contextlib.AsyncExitStack()
    hub, url = await stack.enter_async_context(opened(_document(run), Path(folder), **options))
    return AsyncServedHub(hub, url, stack)


def _document(run: str | Path | dict[str, Any]) -> RunDocument:
    if isinstance(run, dict):
        return with_start(parse(run, "serve"), Path())
    return with_start(read(run), Path(run).parent)
