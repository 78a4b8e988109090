"""A client's connection to its run: sends uploads and heartbeats, receives broadcasts and refusals."""

import asyncio
import contextlib
import functools
import json
import math
import secrets
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from mainstem.engines.federate.protocol.candidate import Compared
from mainstem.engines.federate.protocol.chunking import split
from mainstem.engines.federate.protocol.heartbeats import (
    GOODBYE,
    ClientHeartbeat,
    Position,
    pack_client,
    read_hub,
)
from mainstem.engines.federate.protocol.messages import HEADROOM, SMALL, Broadcast
from mainstem.engines.federate.protocol.run_document import RunDocument, decode
from mainstem.engines.federate.protocol.subjects import Subjects, token
from mainstem.engines.federate.transport import tasks
from mainstem.engines.federate.transport.connection import FAILED, connect, on_reconnect
from mainstem.engines.federate.transport.latest_broadcast import LatestBroadcast
from mainstem.engines.federate.transport.tasks import log
from mainstem.errors import BrokenRun, MainstemError

FETCH_AFTER = 2.0  # seconds after which a client that waits fetches the newest broadcast
HEARTBEAT = 5  # seconds between two heartbeats of a client
AWAY = 15.0  # seconds without a heartbeat, after which the hub is away
RETRY = 0.5  # seconds after which an upload that was not acknowledged is sent again
MAX_REFUSALS = 100  # that are remembered


class Uplink:
    """The network side of one client."""

    def __init__(self, connection: Client, document: RunDocument, client: str):
        self.document = document
        self.refusals: list[str] = []
        self.sent_bytes = 0
        # Of the client; sent with the next heartbeat.
        self.position: Callable[[], Position] = lambda: Position(0, 0, 0)
        self.compared: Compared | None = None  # with a candidate; sent with the next heartbeat
        self._client = client
        self._session = secrets.token_hex(4)
        self._k = document.clients.index(client)
        self._subjects = document.subjects
        self._connection = connection
        self._js: JetStreamContext = connection.jetstream(timeout=5)
        self._broadcasts = LatestBroadcast(document, self._js, self._subjects.broadcast)
        self._candidates = LatestBroadcast(document, self._js, self._subjects.candidate)
        self._in_order = asyncio.Lock()
        self._closed = False
        self._waiting_since = math.inf
        self._missing = 0  # lockstep: the step whose upload is missing, by the hub's last heartbeat
        self._hub_heard = time.monotonic()
        self._behind = False  # whether there is a later broadcast, by the hub's last heartbeat

    @classmethod
    async def open(
        cls, url: str, run: str, client: str, credentials: str | Path | None, **options: Any
    ) -> "Uplink":
        """Connects, reads the run document and subscribes to broadcasts."""
        subjects = Subjects(token("join", "run", run))
        token("join", "client", client)
        connection = await connect(url, credentials, name=client, **options)
        try:
            document = await _document(connection, subjects)
            if client not in document.clients:
                listed = ", ".join(document.clients[:8])
                more = " ..." if len(document.clients) > 8 else ""
                raise MainstemError(f"{run}: has no client {client!r}: one of {listed}{more}")
            uplink = cls(connection, document, client)
            await uplink._subscribe()
        except BaseException:
            await connection.close()
            raise
        return uplink

    async def _subscribe(self) -> None:
        subscribe = self._connection.subscribe
        await subscribe(self._subjects.refusals(self._client), cb=self._on_refusal)
        await subscribe(self._subjects.hub_heartbeat, cb=self._on_hub_heartbeat)
        on_reconnect(self._connection, self._broadcasts.fetch)
        await self._broadcasts.follow(self._connection)
        await self._candidates.follow(self._connection)
        self._heartbeats = tasks.start(self._send_heartbeats(), f"client {self._client}: heartbeat")

    async def close(self) -> None:
        """Tells the hub that the client leaves, and disconnects."""
        self._heartbeats.cancel()
        self._closed = True
        self._broadcasts.changed.set()
        if self.connected:
            with contextlib.suppress(*FAILED):
                await self._connection.publish(self._subjects.heartbeat(self._client), GOODBYE)
                await self._connection.flush(2)
        await self._connection.close()

    # --- presence ----------------------------------------------------------------------------------

    @property
    def connected(self) -> bool:
        """Whether there is a connection to the server."""
        return bool(self._connection.is_connected)

    @property
    def hub_is_away(self) -> bool:
        """Whether the hub, or the server before it, has not been heard for a while."""
        return time.monotonic() - self._hub_heard > AWAY

    async def _on_hub_heartbeat(self, message: Msg) -> None:
        self._hub_heard = time.monotonic()
        found = read_hub(message.data, self._k)
        if found is None:
            return
        position, missing = found
        self._missing = position.step if missing else 0
        if missing:
            self._broadcasts.changed.set()
        self._behind = self.latest is None or position[:2] > self.latest.age

    async def _send_heartbeats(self) -> None:
        """Sends heartbeats, logs when the hub is away, and fetches a broadcast that may have been missed."""
        alone, fetching = False, None
        for second in range(2**62):
            if self.hub_is_away != alone:
                alone = self.hub_is_away
                what = "is away: this client continues alone" if alone else "is back"
                log.warning("%s: client %s: the hub %s", self._subjects.run, self._client, what)
            if second % HEARTBEAT == 0:
                with contextlib.suppress(*FAILED):
                    body = pack_client(
                        ClientHeartbeat(self.position(), self._session, self.compared)
                    )
                    await self._connection.publish(self._subjects.heartbeat(self._client), body)
            await asyncio.sleep(1.0)
            waits = time.monotonic() - self._waiting_since > FETCH_AFTER
            if (waits or self._behind) and (fetching is None or fetching.done()):
                self._behind = False
                fetching = tasks.start(self._fetch(), f"client {self._client}: fetch")

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
        limit = min(SMALL, self._connection.max_payload - HEADROOM)
        if len(data) > limit or self.document.rules.deadline is not None:
            return False
        try:
            await self._connection.publish(self._subjects.upload(self._client), data)
        except FAILED:
            return False
        self.sent_bytes += len(data)
        return True

    async def _flush(self) -> None:
        """Waits until the server has everything that was written so far."""
        with contextlib.suppress(*FAILED):
            await self._connection.flush(5)  # seconds

    def _is_received(self, step: int) -> bool:
        return self.latest is not None and bool(self.latest.received[self._k] >= step)

    async def send(self, number: int, data: bytes, wanted: Callable[[], bool]) -> None:
        """Publishes an upload until the server acknowledges it or it is no longer `wanted`.

        Uploads are sent one after the other: the hub refuses one that comes after a newer one as a replay.
        """
        chunks = split(data, self._connection.max_payload - HEADROOM, number)
        async with self._in_order:
            while wanted():
                try:
                    for chunk in chunks:
                        await self._js.publish(self._subjects.upload(self._client), chunk)
                    self.sent_bytes += sum(map(len, chunks))
                    return
                except FAILED:
                    await asyncio.sleep(RETRY)

    async def _on_refusal(self, message: Msg) -> None:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            self.refusals.append(str(json.loads(message.data)["message"]))
            del self.refusals[:-MAX_REFUSALS]


async def _document(connection: Client, subjects: Subjects) -> RunDocument:
    js = connection.jetstream(timeout=5)
    try:
        found = await js.get_msg(subjects.broadcast_stream, subject=subjects.document, direct=True)
        return _decoded(found.data or b"", subjects.run)
    except TimeoutError:
        why = await _silence(connection)
        raise MainstemError(f"{subjects.run}: {why}: try again") from None
    except (*FAILED, json.JSONDecodeError):
        raise MainstemError(f"{subjects.run}: there is no such run on this NATS server") from None


async def _silence(connection: Client) -> str:
    """Why a question was not answered. Servers before 2.11 do not answer if there is no such run."""
    try:
        await connection.flush(1)  # seconds
    except FAILED:
        return "the NATS server does not answer"
    return "there is no such run on this NATS server, or it does not answer"


_decoded = functools.lru_cache(maxsize=16)(decode)  # once for all clients in this process
