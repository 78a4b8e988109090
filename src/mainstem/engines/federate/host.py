"""A hub as a process: its broker, its run, its folder."""

import asyncio
import contextlib
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mainstem.disk import lock, npz, write
from mainstem.engines.federate import broker
from mainstem.engines.federate.charter import Charter
from mainstem.engines.federate.hub import Hub

Heard = Callable[[dict[str, Any]], None]


def host(
    charter: Charter,
    folder: Path,
    *,
    url: str | None = None,
    credentials: str | Path | None = None,
    replicas: int = 1,
    sync: str = "always",
    started: Callable[[str], None] = lambda url: None,
    beat: Heard = lambda status: None,
) -> dict[str, Any]:
    """Serve a run until it is finished; without a `url` on a private broker in `folder`.

    `started` is told the broker's address, `beat` how it goes, every second. The last status is returned,
    and the model is in `folder` then; so it is after Ctrl-C or SIGTERM.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(lock(folder)), broker.answering(), contextlib.ExitStack() as stack:
        if url is None:
            private = broker.Private(folder / "broker", sync)
            stack.callback(private.stop)
            url = private.url
        return asyncio.run(
            _serve(charter, folder, url, credentials, replicas, lambda: started(url), beat)
        )


async def _serve(
    charter: Charter,
    folder: Path,
    url: str,
    credentials: str | Path | None,
    replicas: int,
    started: Callable[[], None],
    beat: Heard,
) -> dict[str, Any]:
    connection = await broker.connect(url, credentials)
    try:
        hub = Hub(charter, connection, replicas, folder)
        await hub.open()
        _stoppable(hub)
        started()
        beating = asyncio.create_task(_beating(hub, beat))
        try:
            await hub.serve()
        finally:
            beating.cancel()
            _saved(hub, folder)
        if hub.stopped:
            raise KeyboardInterrupt
        return hub.status()
    finally:
        await connection.close()


def _stoppable(hub: Hub) -> None:
    """The first Ctrl-C or SIGTERM lets the round under way end, the second does not."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        hub.stop()
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(each)

    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stop)


async def _beating(hub: Hub, beat: Heard) -> None:
    while True:
        await asyncio.sleep(1.0)
        beat(hub.status())


def _saved(hub: Hub, folder: Path) -> None:
    """The model as it is, and how it went."""
    write(folder / "model.npz", npz({"model": hub.table.params}))
    write(folder / "status.json", json.dumps(hub.status(), indent=1))
