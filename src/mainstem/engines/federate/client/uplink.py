"""A client's connection to its run: sends uploads and heartbeats, receives broadcasts and refusals."""

import asyncio
import contextlib
import functools
import json
import math
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from mainstem.engines.federate import event_log
from mainstem.engines.federate.protocol.chunking import split
from mainstem.engines.federate.protocol.comparisons import AloneLosses, CandidateLosses
from mainstem.engines.federate.protocol.heartbeats import (
    GOODBYE,
    ClientHeartbeat,
    Position,
    pack_client,
    read_hub,
)
from mainstem.engines.federate.protocol.messages import HEADROOM, SMALL, Broadcast, Reason
from mainstem.engines.federate.protocol.run_document import RunDocument
from mainstem.engines.federate.protocol.subjects import Subjects, token
from mainstem.engines.federate.protocol.versions import Incompatible, versions
from mainstem.engines.federate.transport import tasks
from mainstem.engines.federate.transport.connection import (
    FAILED,
    NotThere,
    connect,
    on_reconnect,
)
from mainstem.engines.federate.transport.document_fetch import (
    NoRun,
    fetch_awaited,
    fetch_document,
    not_listed,
)
from mainstem.engines.federate.transport.latest_broadcast import LatestBroadcast
from mainstem.errors import BrokenRun, MainstemError

FETCH_AFTER = 2.0  # seconds after which a client that waits fetches the newest broadcast
HEARTBEAT = 5  # seconds between two heartbeats of a client
AWAY = 15.0  # seconds without a heartbeat, after which the hub is away
RETRY = 0.5  # seconds after which an upload that was not acknowledged is sent again
MAX_REFUSALS = 100  # that are remembered


class Uplink:
    """The network side of one client."""

    def __init__(self, document: RunDocument, client: str):
        self.document = document
        self.refusals: list[str] = []
        self._reasons: set[str] = set()  # for which uploads were refused
        self.sent_bytes = 0
        # Of the client; sent with the next heartbeat.
        self.position: Callable[[], Position] = lambda: Position(0, 0, 0)
        self.compared: CandidateLosses | None = None
        self.alone: AloneLosses | None = None
        self.had = 0  # the merge that it had before an epoch that began at an earlier one
        self.session = (
            time.time_ns() // 1000
        )  # when this process joined, in microseconds since 1970
        self.ended = ""  # why this client no longer takes part
        self._client = client
        self._k = document.clients.index(client)
        self._subjects = document.subjects
        self._connection: Client | None = None  # none yet, for a client that begins offline
        self._js: JetStreamContext | None = None
        self._broadcasts = LatestBroadcast(document, self._subjects.broadcast, self._renewed)
        self._candidates = LatestBroadcast(document, self._subjects.candidate, self._renewed)
        self._work: list[asyncio.Task[None]] = []
        self._in_order = asyncio.Lock()
        self._closed = False
        self._announced = False
        self._waiting_since = math.inf
        self._missing = 0  # lockstep: the step whose upload is missing, by the hub's last heartbeat
        self._hub_heard = time.monotonic()
        self._behind = False  # whether there is a later broadcast, by the hub's last heartbeat

    @classmethod
    async def open(
        cls,
        url: str,
        run: str,
        client: str,
        credentials: str | Path | None,
        wait: float = 0.0,
        **options: Any,
    ) -> "Uplink":
        """Connects, reads the run document and subscribes to broadcasts.

        It waits so many seconds for the server and the run.
        """
        subjects, end = Subjects(token("join", "run", run)), time.monotonic() + wait
        token("join", "client", client)
        connection = await connect(url, credentials, name=client, wait=wait, **options)
        try:
            document = await fetch_awaited(connection, subjects, end)
            if client not in document.clients:
                raise MainstemError(f"{run}: {not_listed(document, client)}")
            uplink = cls(document, client)
            await uplink._attach(connection)
        except Incompatible:
            with contextlib.suppress(*FAILED):  # the hub raises an alarm
                greeting = json.dumps({"versions": versions({})}).encode()
                await connection.publish(subjects.heartbeat(client), greeting)
                await connection.flush(2)
            await connection.close()
            raise
        except BaseException:
            await connection.close()
            raise
        return uplink

    @classmethod
    def offline(cls, document: RunDocument, client: str, url: str, **options: Any) -> "Uplink":
        """An uplink without a connection, which it seeks from now on; `options` are those of `connect`."""
        uplink = cls(document, client)
        uplink._hub_heard = -math.inf
        uplink._start(uplink._come_online(url, options), "connection")
        return uplink

    async def _come_online(self, url: str, options: dict[str, Any]) -> None:
        while self._connection is None:
            try:
                connection = await connect(url, **options)
            except NotThere:
                await asyncio.sleep(RETRY)
                continue
            except MainstemError as error:
                self._end(str(error))
                return
            await self._attach(connection)
            await self._renewed()

    def announce(self) -> None:
        """Sends heartbeats from now on: this process is the client, and has its folder."""
        self._announced = True
        self._start(self._send_heartbeats(), "heartbeat")

    def _start(self, work: Coroutine[Any, Any, None], what: str) -> None:
        self._work.append(tasks.start(work, f"client {self._client}: {what}"))

    async def _renewed(self) -> RunDocument:
        """The newest revision of the document, which is followed from now on."""
        assert self._connection is not None
        try:
            found = await fetch_document(self._connection, self._subjects)
        except NoRun:
            return self.document
        except MainstemError as error:
            self._end(str(error).removeprefix(f"{self._subjects.run}: "))
            return self.document
        if found.digest != self.document.digest:
            self._end("the run of this name is another one now: choose another folder")
        elif found.revision > self.document.revision:
            if self._client in found.clients:
                self._k = found.clients.index(self._client)
            else:
                self._end(not_listed(found, self._client))
            self.document = found
        return self.document

    def _end(self, why: str) -> None:
        """No longer takes part in the run."""
        if not self.ended:
            self.ended = f"{self._subjects.run}: {why}"
            event_log.error("ended", why, run=self._subjects.run, client=self._client)
        self._broadcasts.changed.set()

    async def _attach(self, connection: Client) -> None:
        """Takes a connection, and subscribes."""
        self._connection, self._js = connection, connection.jetstream(timeout=5)
        await connection.subscribe(self._subjects.refusals(self._client), cb=self._on_refusal)
        await connection.subscribe(self._subjects.hub_heartbeat, cb=self._on_hub_heartbeat)
        on_reconnect(connection, self._broadcasts.fetch)
        await self._broadcasts.follow(connection, self._js)
        await self._candidates.follow(connection, self._js)

    async def close(self) -> None:
        """Tells the hub that the client leaves, and disconnects."""
        for work in self._work:
            work.cancel()
        self._closed = True
        self._broadcasts.changed.set()
        if self._connection is None:
            return
        if self.connected and self._announced:
            with contextlib.suppress(*FAILED):
                if not self.ended:  # the last comparisons
                    await self._send_heartbeat(self._connection)
                await self._connection.publish(self._subjects.heartbeat(self._client), GOODBYE)
                await self._connection.flush(2)
        await self._connection.close()

    # --- presence ----------------------------------------------------------------------------------

    @property
    def connected(self) -> bool:
        """Whether there is a connection to the server."""
        return self._connection is not None and bool(self._connection.is_connected)

    @property
    def hub_is_away(self) -> bool:
        """Whether the hub, or the server before it, has not been heard for a while."""
        return time.monotonic() - self._hub_heard > AWAY

    async def _on_hub_heartbeat(self, message: Msg) -> None:
        self._hub_heard = time.monotonic()
        found = read_hub(message.data, self._k)
        if found is None:
            return
        position, revision, missing = found
        missing = missing and revision == self.document.revision
        self._missing = position.step if missing else 0
        if missing:
            self._broadcasts.changed.set()
        self._behind = self.latest is None or position[:2] > self.latest.age

    async def _send_heartbeats(self) -> None:
        """Sends heartbeats, logs when the hub is away, and fetches a broadcast that may have been missed."""
        away, fetching = False, None
        for second in range(2**62):
            if self.hub_is_away != away:
                away = self.hub_is_away
                what = "is away: this client continues alone" if away else "is back"
                event_log.warning(
                    "hub_away" if away else "hub_back",
                    f"the hub {what}",
                    run=self._subjects.run,
                    client=self._client,
                )
            if second % HEARTBEAT == 0 and not self.ended and self._connection is not None:
                with contextlib.suppress(*FAILED):
                    await self._send_heartbeat(self._connection)
            await asyncio.sleep(1.0)
            waits = time.monotonic() - self._waiting_since > FETCH_AFTER
            if (waits or self._behind) and (fetching is None or fetching.done()):
                self._behind = False
                fetching = tasks.start(self._fetch(), f"client {self._client}: fetch")

    async def _send_heartbeat(self, connection: Client) -> None:
        now = self.position(), self.session, self.compared, self.had, self.alone
        body = pack_client(ClientHeartbeat(*now), self.document.versions)
        await connection.publish(self._subjects.heartbeat(self._client), body)

    async def _fetch(self) -> None:
        await self._broadcasts.fetch()
        self._broadcasts.changed.set()

    # --- broadcasts --------------------------------------------------------------------------------

    @property
    def latest(self) -> Broadcast | None:
        """The newest broadcast."""
        return self._broadcasts.value

    @property
    def candidate(self) -> Broadcast | None:
        """The newest candidate."""
        return self._candidates.value

    async def change(self) -> None:
        """Waits for a newer broadcast, for a heartbeat that misses an upload of this client, or for a while."""
        self._broadcasts.changed.clear()
        self._waiting_since = time.monotonic()
        try:
            await self._broadcasts.changed.wait()
        finally:
            self._waiting_since = math.inf
        if self.ended:
            raise BrokenRun(self.ended)
        if self._closed:
            raise BrokenRun(f"{self._subjects.run}: client {self._client} has left: join again")

    # --- uploads -----------------------------------------------------------------------------------

    async def sync(self, step: int, data: bytes, epoch: int) -> Broadcast:
        """Lockstep: sends the upload of a step, and returns the broadcast of that step or a later one.

        It returns a broadcast of an earlier step if that is of a later epoch than `epoch`, which the upload is of:
        it must be made anew.
        A small upload is published without waiting for an acknowledgement: the broadcast acknowledges it, and the
        hub's heartbeats say whose upload is missing. Missing once, it may still be on its way. Missing again after
        everything written has reached the server, it is lost and sent again.
        """
        send = functools.partial(self.send, step, data, lambda: not self._is_received(step))
        # One after the other, each time that the hub misses the upload:
        remedies: list[Callable[[], Awaitable[None]]] = [self._flush, send]
        self._missing = 0
        if not self._is_received(step) and not await self._published(data):
            await send()
            remedies = []
        while self.latest is None or (self.latest.step < step and self.latest.epoch <= epoch):
            await self.change()
            if self._missing > step:  # the broadcast was lost on its way
                await self._broadcasts.fetch()
            elif self._missing == step and remedies:
                await remedies.pop(0)()
            self._missing = 0
        return self.latest

    async def _published(self, data: bytes) -> bool:
        """Publishes an upload without an acknowledgement, if that is safe.

        A large upload is not: many at once would be dropped. Nor is one with a deadline: a broadcast may come
        without it.
        """
        if self._connection is None or self.document.rules.deadline is not None:
            return False
        if len(data) > min(SMALL, self._connection.max_payload - HEADROOM):
            return False
        try:
            await self._connection.publish(self._subjects.upload(self._client), data)
        except FAILED:
            return False
        self.sent_bytes += len(data)
        return True

    async def _flush(self) -> None:
        """Waits until the server has everything that was written so far."""
        if self._connection is not None:
            with contextlib.suppress(*FAILED):
                await self._connection.flush(5)  # seconds

    def _is_received(self, step: int) -> bool:
        latest = self.latest
        if latest is None or latest.revision != self.document.revision:
            return False
        return bool(latest.received[self._k] >= step)

    async def send(self, number: int, data: bytes, wanted: Callable[[], bool]) -> None:
        """Publishes an upload until the server acknowledges it or it is no longer `wanted`.

        Uploads are sent one after the other: the hub refuses one that comes after a newer one as a replay.
        """
        async with self._in_order:
            while wanted():
                try:
                    if self._connection is not None and self._js is not None:
                        most = self._connection.max_payload - HEADROOM
                        for chunk in split(data, most, number):
                            await self._js.publish(self._subjects.upload(self._client), chunk)
                            self.sent_bytes += len(chunk)
                        return
                except FAILED:
                    pass
                await asyncio.sleep(RETRY)

    async def _on_refusal(self, message: Msg) -> None:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            found = json.loads(message.data)
            mine = found["session"] == self.session
            anybody = found["session"] == 0 and found["reason"] != Reason.SESSION
            if mine or anybody:  # else it is for another process of this client
                self._note_refusal(str(found["reason"]), str(found["message"]))

    def _note_refusal(self, reason: str, text: str) -> None:
        """Remembers why an upload was refused, and logs each reason once."""
        if reason == Reason.SESSION:
            self._end("another process has joined as this client: this one is no longer heard")
        elif reason not in self._reasons:
            self._reasons.add(reason)
            line, run = f"an upload was refused: {text}", self._subjects.run
            event_log.warning("refused", line, run=run, client=self._client, reason=reason)
        self.refusals.append(text)
        del self.refusals[:-MAX_REFUSALS]
