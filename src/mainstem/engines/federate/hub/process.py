"""Runs a hub until its run is finished or a signal comes, then writes the model and status.json."""

import asyncio
import contextlib
import functools
import json
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from nats.aio.client import Client

from mainstem.disk import PRIVATE, lock, private_folder, write
from mainstem.engines.federate import event_log
from mainstem.engines.federate.hub.hub import Hub
from mainstem.engines.federate.hub.live_page import LivePage
from mainstem.engines.federate.hub.metrics import Metrics, MetricsServer
from mainstem.engines.federate.hub.model_file import write_model
from mainstem.engines.federate.hub.tracked import TrackedStatus
from mainstem.engines.federate.own_thread import compute_in_own_thread
from mainstem.engines.federate.protocol.run_document import RunDocument
from mainstem.engines.federate.security.credentials import check_owner
from mainstem.engines.federate.security.permissions import HUB
from mainstem.engines.federate.transport import tasks
from mainstem.engines.federate.transport.connection import FAILED, answering, connect
from mainstem.engines.federate.transport.private_server import PrivateServer
from mainstem.errors import MainstemError
from mainstem.tracking.opening import Asked

SECRET = "private.creds"  # the file in the hub's folder that lets a client use its private server
WATCH = 1.0  # seconds between two looks at the private server
Report = Callable[[dict[str, Any]], None]


def run_hub(
    document: RunDocument,
    folder: Path,
    *,
    started: Callable[[str], None] = lambda url: None,
    report: Report = lambda status: None,
    **options: Any,
) -> dict[str, Any]:
    """Serves a run until it is finished or a signal comes, and returns its last status.

    `started` is called with the server's address, `report` with the status every second; `options` are those of
    `opened`. After SIGTERM it returns, after Ctrl-C it raises KeyboardInterrupt.
    """
    compute_in_own_thread()
    with answering():
        return asyncio.run(_run(document, folder, started, report, options))


async def _run(
    document: RunDocument,
    folder: Path,
    started: Callable[[str], None],
    report: Report,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    stops = _Stops()
    async with opened(document, folder, stops=stops.is_set, **options) as (hub, url):
        stops.end(hub)
        started(url)
        reporting = tasks.start(_report_status(hub, report), "the report of the status")
        try:
            await hub.serve()
        finally:
            reporting.cancel()
    if stops.interrupted:
        raise KeyboardInterrupt
    return hub.status()


@contextlib.asynccontextmanager
async def opened(
    document: RunDocument,
    folder: Path,
    *,
    url: str | None = None,
    credentials: str | Path | None = None,
    replicas: int = 1,
    sync: str = "always",
    metrics: str | None = None,
    dashboard: str | None = None,
    page_ready: Callable[[str], None] = print,
    track: Asked = None,
    wait: float = 0.0,
    stops: Callable[[], bool] = lambda: False,
) -> AsyncIterator[tuple[Hub, str]]:
    """A hub with all that it needs, and the address of its server. At the end the model is written to `folder`.

    Without a `url` it starts a private NATS server in `folder`, for those who can read the file SECRET there;
    else it waits up to so many seconds for the server. With an address for the `metrics`, Prometheus finds them
    there, and health checks too; with one for the `dashboard`, the live page is there, and
    `page_ready` gets its address with the token. `track`: as in `simulate`. `stops()`: whether it is asked to end
    before it is open.
    """
    private_folder(folder)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(lock(folder).release)
        if url is None:
            _refuse_old(folder)
            credentials = folder / SECRET
            server = PrivateServer(folder / "nats-server", sync, credentials)
            stack.callback(server.stop)
            stack.callback(tasks.start(_keep_running(server), "the watch on the server").cancel)
            url = server.url
        if credentials is not None:
            check_owner(Path(credentials), HUB)
        measured = None if metrics is None else Metrics()
        if metrics is not None and measured is not None:
            stack.callback(MetricsServer(metrics, measured).close)
        connection = await connect(url, credentials, wait=wait, given_up=stops)
        stack.push_async_callback(_close, connection)
        again = functools.partial(connect, url, credentials)
        hub = Hub(document, connection, replicas, folder, measured, again)
        await hub.open()
        if dashboard is not None:
            name = document.rules.run
            live = LivePage(dashboard, folder, name, url, credentials, page_ready)
            stack.callback(live.stop)
            stack.callback(tasks.start(live.keep_running(), "the watch on the live page").cancel)
        if track is not None:
            tracked = TrackedStatus(track, hub.document, hub.status()["version"])
            stack.callback(lambda: tracked.close(hub.status()))
            stack.callback(tasks.start(_report_status(hub, tracked.take), "tracking").cancel)
        try:
            yield hub, url
        finally:
            _write_result(hub, folder)


async def _close(connection: Client) -> None:
    with contextlib.suppress(*FAILED):  # the server may be gone
        await connection.close()


def _refuse_old(folder: Path) -> None:
    """Refuses the folder of an earlier version: its state is not of a format that this one reads."""
    if (folder / "broker").exists():
        raise MainstemError(
            f"{folder}: holds a run of an earlier version of mainstem: finish it there, or choose another --folder"
        )


class _Stops:
    """The signals that end a hub: the first after the current round, the second at once.

    SIGTERM is how a service is stopped, and no failure; Ctrl-C is an interrupt.
    """

    def __init__(self) -> None:
        self.interrupted = False
        self._asked = False
        self._hub: Hub | None = None
        self._loop = asyncio.get_running_loop()
        for each in (signal.SIGINT, signal.SIGTERM):
            self._loop.add_signal_handler(each, self._stop, each)

    def is_set(self) -> bool:
        """Whether a signal has come."""
        return self._asked

    def end(self, hub: Hub) -> None:
        """Has signals end this hub."""
        self._hub = hub
        if self._asked:
            hub.stop()

    def _stop(self, signal_: signal.Signals) -> None:
        self._asked = True
        self.interrupted = signal_ is signal.SIGINT
        if self._hub is not None:
            self._hub.stop()
        for each in (signal.SIGINT, signal.SIGTERM):
            self._loop.remove_signal_handler(each)


async def _keep_running(server: PrivateServer) -> None:
    """Starts the private server again if it has ended. Hub and clients reconnect, and its streams are on disk."""
    while True:
        await asyncio.sleep(WATCH)
        if not server.running:
            code, where = server.process.returncode, server.folder / "server.log"
            text = f"the private NATS server has ended with code {code}, see {where}: it is started again"
            event_log.error("server_ended", text, code=code)
            try:
                await asyncio.to_thread(server.start)
            except MainstemError as error:
                event_log.error("server_not_started", str(error))


async def _report_status(hub: Hub, report: Report) -> None:
    while True:
        await asyncio.sleep(1.0)
        report(hub.status())


def _write_result(hub: Hub, folder: Path) -> None:
    """Writes the model and the status."""
    write_model(folder, hub.aggregator)
    write(folder / "status.json", json.dumps(hub.status(), indent=1), PRIVATE)
