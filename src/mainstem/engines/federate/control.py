"""Reads the status of runs and sends orders to their hubs. The hub answers in hub/orders.py.

A hub publishes its status every second. One that is not heard for a few seconds does not answer, whatever its last
status says.
"""

import asyncio
import contextlib
import itertools
import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from mainstem.engines.federate.protocol.subjects import Subjects, token
from mainstem.engines.federate.protocol.timeline import SLOTS, WIDTHS, Place, Timeline, unpack
from mainstem.engines.federate.security.credentials import check_owner
from mainstem.engines.federate.security.permissions import HUB
from mainstem.engines.federate.transport.connection import (
    SILENT,
    answering,
    connect,
    runs,
    why_silent,
)
from mainstem.errors import MainstemError

ORDER = 20.0  # seconds within which a hub must have executed an order
PATIENCE = 4.0  # seconds within which a hub must be heard
POLL = 0.05  # seconds
AT_ONCE = 64  # moments of a timeline that are asked for
ENDED = ("finished", "stopped")  # states after which nobody is expected to answer
NOT_ANSWERING = "not answering"
FINE = ("running", "paused", "finished")  # states that need nobody


class Observer:
    """Follows the runs on a NATS server, or one of them."""

    def __init__(self, connection: Client, run: str | None):
        self._connection = connection
        self._js = connection.jetstream(timeout=5)
        self._run = run
        self._heard: dict[str, tuple[float, dict[str, Any]]] = {}  # time and status
        self._since = time.monotonic()

    @classmethod
    async def open(
        cls, url: str, credentials: str | Path | None = None, run: str | None = None
    ) -> Self:
        """Connects, and listens to the hub of this run or of all."""
        if run is not None:
            token("status", "run", run)
        connection = await connect(url, credentials)
        observer = cls(connection, run)
        await connection.subscribe(Subjects(run or "*").status, cb=observer._on_status)
        return observer

    async def _on_status(self, message: Msg) -> None:
        run = message.subject.split(".")[1]
        with contextlib.suppress(ValueError):
            self._heard[run] = time.monotonic(), _status(run, message.data)

    async def statuses(self) -> list[dict[str, Any]]:
        """The latest status of each run. Waits a few seconds for hubs that are silent."""
        stored = await self.stored()
        while not all(self._is_known(name, each) for name, each in stored.items()):
            await asyncio.sleep(POLL)
        return [self._latest(name, each) for name, each in stored.items() if each is not None]

    async def stored(self) -> dict[str, dict[str, Any] | None]:
        """The stored status of each run that this observer may read; None where it cannot be read."""
        with answering():
            names = await runs(self._connection) if self._run is None else [self._run]
            return {name: await self._stored(name) for name in names}

    async def timeline(self, run: str) -> Timeline:
        """The timeline of a run, as far as it is answered; empty if there is none, or none that may be read."""
        subjects, found = Subjects(run), Timeline(whole=False)
        at_once = asyncio.Semaphore(AT_ONCE)

        async def read(place: Place) -> None:
            async with at_once:
                message = await self._js.get_msg(
                    subjects.timeline_stream, subject=subjects.moment(*place), direct=True
                )
            with contextlib.suppress(ValueError):
                found.put(place, unpack(message.data or b""))

        async def tried(place: Place) -> None:
            with contextlib.suppress(nats.js.errors.NotFoundError):
                await read(place)

        try:
            await tried((WIDTHS[0], 0))  # alone: where it is not answered, none is
            async with asyncio.TaskGroup() as group:  # which ends the others when one fails
                for place in itertools.product(WIDTHS, range(SLOTS)):
                    group.create_task(tried(place))
            found.whole = True
        except* (nats.errors.Error, nats.js.errors.Error, TimeoutError):
            pass
        return found

    async def _stored(self, run: str) -> dict[str, Any] | None:
        """The last status that a run has published; None if there is none that can be read."""
        subjects = Subjects(run)
        try:
            found = await self._js.get_msg(
                subjects.broadcast_stream, subject=subjects.status, direct=True
            )
            return _status(run, found.data or b"")
        except (nats.js.errors.NotFoundError, nats.errors.NoRespondersError, ValueError):
            if self._run is None:
                return None  # of another program, or of a run that this observer may not see
            raise MainstemError(f"{run}: there is no such run on this NATS server") from None
        except nats.errors.TimeoutError:
            why = await why_silent(self._connection)
            if self._run is None and why != SILENT:
                return None
            raise MainstemError(f"{run}: {why}") from None

    def _is_known(self, run: str, stored: dict[str, Any] | None) -> bool:
        """Whether the hub was heard lately, or was long enough not, or has ended."""
        if stored is None or stored.get("state") in ENDED:
            return True
        now, (heard, _) = time.monotonic(), self._heard.get(run, (-PATIENCE, {}))
        return now - heard < PATIENCE or now - self._since > PATIENCE

    def _latest(self, run: str, stored: dict[str, Any]) -> dict[str, Any]:
        heard, status = self._heard.get(run, (None, stored))
        age = max(0.0, time.time() - float(status.get("time", 0.0)))
        silent = heard is None or time.monotonic() - heard >= PATIENCE
        if silent and status.get("state") not in ENDED:
            status = status | {"state": NOT_ANSWERING}
        return status | {"age": round(age, 1)}

    async def close(self) -> None:
        """Disconnects."""
        await self._connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


def _status(run: str, data: bytes) -> dict[str, Any]:
    """A status as it was published at the subject of a run. Raises ValueError if it is none of this run."""
    try:
        found = dict(json.loads(data))
        if found["run"] == run and math.isfinite(found.get("time", 0.0)):
            return found
    except (TypeError, KeyError, RecursionError, OverflowError) as error:
        raise ValueError(f"this is no status: {error}") from None
    raise ValueError(f"this is no status of {run}")


async def statuses(
    url: str, credentials: str | Path | None = None, run: str | None = None
) -> list[dict[str, Any]]:
    """The latest status of every run on the server, or of one."""
    async with await Observer.open(url, credentials, run) as observer:
        return await observer.statuses()


def needs_somebody(status: Mapping[str, Any]) -> bool:
    """Whether somebody should look at a run."""
    return status.get("state") not in FINE or bool(status.get("alarms"))


async def send_order(
    url: str, run: str, name: str, credentials: str | Path | None = None, **arguments: Any
) -> dict[str, Any]:
    """Sends an order to the hub of a run. Returns its status."""
    if credentials is not None:
        check_owner(Path(credentials), HUB)
    subjects = Subjects(token("order", "run", run))
    connection = await connect(url, credentials)
    try:
        data = json.dumps({"order": name, **arguments}).encode()
        answer = json.loads((await connection.request(subjects.control, data, timeout=ORDER)).data)
        if "refused" in answer:
            raise MainstemError(f"{run}: {answer['refused']}")
        return dict(answer)
    except nats.errors.NoRespondersError:
        raise MainstemError(
            f"{run}: no hub answers on this NATS server, or not to this credential"
        ) from None
    except nats.errors.TimeoutError:
        text = f"no hub has answered within {ORDER:.0f} seconds, or not to this credential"
        raise MainstemError(f"{run}: {text}: look at the status before you repeat it") from None
    finally:
        await connection.close()


async def delete_run(url: str, run: str, credentials: str | Path | None = None) -> None:
    """Removes everything of a run from the NATS server. Its hub must have ended."""
    subjects = Subjects(token("delete", "run", run))
    async with await Observer.open(url, credentials, run) as observer:
        (found,) = await observer.statuses()
        if found["state"] not in (*ENDED, NOT_ANSWERING):
            raise MainstemError(f"{run}: its hub is {found['state']}: stop it first")
        js = observer._js
        with answering():
            for stream in (
                subjects.upload_stream,
                f"KV_{subjects.bucket}",
                subjects.broadcast_stream,
                subjects.timeline_stream,
            ):
                with contextlib.suppress(nats.js.errors.NotFoundError):
                    await js.delete_stream(stream)
