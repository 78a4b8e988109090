"""Runs a hub until its run is finished or a signal comes, then writes model.npz and status.json."""

import asyncio
import contextlib
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mainstem.disk import PRIVATE, lock, npz, private_folder, write
from mainstem.engines.federate.hub.hub import Hub
from mainstem.engines.federate.protocol.run_document import RunDocument
from mainstem.engines.federate.transport.connection import answering, connect
from mainstem.engines.federate.transport.private_server import PrivateServer
from mainstem.errors import MainstemError

SECRET = "private.creds"  # the file in the hub's folder that lets a client use its private server
Report = Callable[[dict[str, Any]], None]


def run_hub(
    document: RunDocument,
    folder: Path,
    *,
    url: str | None = None,
    credentials: str | Path | None = None,
    replicas: int = 1,
    sync: str = "always",
    started: Callable[[str], None] = lambda url: None,
    report: Report = lambda status: None,
) -> dict[str, Any]:
    """Serves a run until it is finished, and returns its last status.

    Without a `url` it starts a private NATS server in `folder`, for those who can read the file SECRET there.
    `started` is called with the server's address, `report` with the status every second. The model is written
    to `folder` at the end, also after Ctrl-C or SIGTERM.
    """
    private_folder(folder)
    with answering(), contextlib.ExitStack() as stack:
        stack.callback(lock(folder).release)
        if url is None:
            _refuse_old(folder)
            credentials = folder / SECRET
            server = PrivateServer(folder / "nats-server", sync, credentials)
            stack.callback(server.stop)
            url = server.url
        serving = _serve(document, folder, url, credentials, replicas, lambda: started(url), report)
        return asyncio.run(serving)


def _refuse_old(folder: Path) -> None:
    """Refuses the folder of an earlier version: its state is not of a format that this one reads."""
    if (folder / "broker").exists():
        raise MainstemError(
            f"{folder}: holds a run of an earlier version of mainstem: finish it there, or choose another --folder"
        )


async def _serve(
    document: RunDocument,
    folder: Path,
    url: str,
    credentials: str | Path | None,
    replicas: int,
    started: Callable[[], None],
    report: Report,
) -> dict[str, Any]:
    connection = await connect(url, credentials)
    try:
        hub = Hub(document, connection, replicas, folder)
        await hub.open()
        _stop_on_signals(hub)
        started()
        reporting = asyncio.create_task(_report_status(hub, report))
        try:
            await hub.serve()
        finally:
            reporting.cancel()
            _write_result(hub, folder)
        if hub.stopped:
            raise KeyboardInterrupt
        return hub.status()
    finally:
        await connection.close()


def _stop_on_signals(hub: Hub) -> None:
    """The first Ctrl-C or SIGTERM ends the hub after the current round, the second at once."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        hub.stop()
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(each)

    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stop)


async def _report_status(hub: Hub, report: Report) -> None:
    while True:
        await asyncio.sleep(1.0)
        report(hub.status())


def _write_result(hub: Hub, folder: Path) -> None:
    """Writes the model and the status."""
    write(folder / "model.npz", npz({"model": hub.aggregator.model}), PRIVATE)
    write(folder / "status.json", json.dumps(hub.status(), indent=1), PRIVATE)
