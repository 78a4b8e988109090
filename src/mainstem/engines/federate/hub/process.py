"""Runs a hub until its run is finished or a signal comes, then writes model.npz and status.json."""

import asyncio
import contextlib
import json
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from nats.aio.client import Client

from mainstem.disk import PRIVATE, lock, npz, private_folder, write
from mainstem.engines.federate.hub.hub import Hub
from mainstem.engines.federate.own_thread import compute_in_own_thread
from mainstem.engines.federate.protocol.run_document import RunDocument
from mainstem.engines.federate.transport import tasks
from mainstem.engines.federate.transport.connection import FAILED, answering, connect
from mainstem.engines.federate.transport.private_server import PrivateServer
from mainstem.errors import MainstemError

SECRET = "private.creds"  # the file in the hub's folder that lets a client use its private server
WATCH = 1.0  # seconds between two looks at the private server
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
    compute_in_own_thread()
    private_folder(folder)
    with answering(), contextlib.ExitStack() as stack:
        stack.callback(lock(folder).release)
        server = None
        if url is None:
            _refuse_old(folder)
            credentials = folder / SECRET
            server = PrivateServer(folder / "nats-server", sync, credentials)
            stack.callback(server.stop)
            url = server.url
        connecting = connect(url, credentials)
        hub = partial(Hub, document, replicas=replicas, folder=folder)
        return asyncio.run(_serve(connecting, hub, folder, server, lambda: started(url), report))


def _refuse_old(folder: Path) -> None:
    """Refuses the folder of an earlier version: its state is not of a format that this one reads."""
    if (folder / "broker").exists():
        raise MainstemError(
            f"{folder}: holds a run of an earlier version of mainstem: finish it there, or choose another --folder"
        )


async def _serve(
    connecting: Awaitable[Client],
    made: Callable[[Client], Hub],
    folder: Path,
    server: PrivateServer | None,
    started: Callable[[], None],
    report: Report,
) -> dict[str, Any]:
    connection = await connecting
    try:
        hub = made(connection)
        await hub.open()
        _stop_on_signals(hub)
        started()
        background = [tasks.start(_report_status(hub, report), "the report of the status")]
        if server is not None:
            background.append(tasks.start(_keep_running(server), "the watch on the server"))
        try:
            await hub.serve()
        finally:
            for task in background:
                task.cancel()
            _write_result(hub, folder)
        if hub.stopped:
            raise KeyboardInterrupt
        return hub.status()
    finally:
        with contextlib.suppress(*FAILED):  # the server may be gone
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


async def _keep_running(server: PrivateServer) -> None:
    """Starts the private server again if it has ended. Hub and clients reconnect, and its streams are on disk."""
    while True:
        await asyncio.sleep(WATCH)
        if not server.running:
            code, where = server.process.returncode, server.folder / "server.log"
            tasks.log.error(
                "the private NATS server has ended with code %d, see %s: it is started again",
                code,
                where,
            )
            try:
                await asyncio.to_thread(server.start)
            except MainstemError as error:
                tasks.log.error("%s", error)


async def _report_status(hub: Hub, report: Report) -> None:
    while True:
        await asyncio.sleep(1.0)
        report(hub.status())


def _write_result(hub: Hub, folder: Path) -> None:
    """Writes the model and the status."""
    write(folder / "model.npz", npz({"model": hub.aggregator.model}), PRIVATE)
    write(folder / "status.json", json.dumps(hub.status(), indent=1), PRIVATE)
