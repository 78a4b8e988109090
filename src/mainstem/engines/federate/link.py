"""A client's connection to its run: the newest model comes in, uploads go out until they are in."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from mainstem.engines.federate import broker
from mainstem.engines.federate.charter import Charter, draw_up
from mainstem.engines.federate.hub import SLACK
from mainstem.engines.federate.names import Names, token
from mainstem.engines.federate.pieces import Joiner, cut, place
from mainstem.engines.federate.wire import Broadcast, Refused, read_broadcast
from mainstem.errors import MainstemError

LARGEST = 2**34  # bytes of a model
LOST = 2.0  # seconds without news after which the newest model is asked for
BEAT = 5.0  # seconds between two signs of life
AGAIN = 0.5  # seconds after which an upload that was not taken is sent again

FAILED = (nats.errors.Error, nats.js.errors.Error, OSError, TimeoutError)


class Link:
    """The network side of one client."""

    def __init__(self, connection: Client, charter: Charter, client: str):
        self.charter = charter
        self.latest: Broadcast | None = None
        self.refusals: list[str] = []
        self.sent_bytes = 0
        self._client = client
        self._names = charter.names
        self._connection = connection
        self._js: JetStreamContext = connection.jetstream(timeout=5)
        self._joiner = Joiner(LARGEST)
        self._news = asyncio.Event()

    @classmethod
    async def open(
        cls, url: str, run: str, client: str, credentials: str | Path | None, **options: Any
    ) -> "Link":
        """Connect, read the run's charter, and follow its model."""
        names = Names(token("join", "run", run))
        token("join", "client", client)
        connection = await broker.connect(url, credentials, name=client, **options)
        try:
            charter = await _charter(connection, names)
            if client not in charter.clients:
                known = ", ".join(charter.clients[:8]) + (
                    " ..." if len(charter.clients) > 8 else ""
                )
                raise MainstemError(f"{run}: has no client {client!r}: one of {known}")
            link = cls(connection, charter, client)
            await link._follow()
        except BaseException:
            await connection.close()
            raise
        return link

    async def _follow(self) -> None:
        await self._connection.subscribe(self._names.model("*"), cb=self._said)
        await self._connection.subscribe(self._names.refusals(self._client), cb=self._told)
        self._connection._reconnected_cb = self.look
        self._beating = asyncio.create_task(self._beat())
        await self.look()

    async def _beat(self) -> None:
        """Now and then say that this client is there."""
        while True:
            with contextlib.suppress(*FAILED):
                await self._connection.publish(self._names.here(self._client))
            await asyncio.sleep(BEAT)

    @property
    def connected(self) -> bool:
        """Whether the broker is there."""
        return bool(self._connection.is_connected)

    async def close(self) -> None:
        """Say what is left to say, and go."""
        self._beating.cancel()
        with contextlib.suppress(*FAILED):
            await asyncio.wait_for(self._connection.drain(), 5)
        await self._connection.close()

    # --- models ------------------------------------------------------------------------------------

    async def _said(self, message: Msg) -> None:
        try:
            data = self._joiner.add(message.data)
        except Refused:  # a piece was missed
            await self.look()
            return
        if data is not None:
            self._take(data)

    def _take(self, data: bytes) -> None:
        with contextlib.suppress(Refused):
            broadcast = read_broadcast(data)
            newer = self.latest is None or broadcast.version > self.latest.version
            if broadcast.run == self.charter.digest and newer:
                self.latest = broadcast
                self._news.set()

    async def look(self) -> None:
        """Ask the broker for the newest model."""
        with contextlib.suppress(*FAILED):
            first = await self._stored(0)
            where = place(first)
            joiner, data = Joiner(LARGEST), None
            for n in range(1 if where is None else where.of):
                data = joiner.add(first if n == 0 else await self._stored(n))
            if data is not None:
                self._take(data)

    async def _stored(self, piece: int) -> bytes:
        found = await self._js.get_msg(
            self._names.broadcasts, subject=self._names.model(piece), direct=True
        )
        return found.data or b""

    async def newer(self, ready: Callable[[Broadcast], bool]) -> Broadcast:
        """Wait for a model that is `ready`."""
        while self.latest is None or not ready(self.latest):
            self._news.clear()
            try:
                async with asyncio.timeout(LOST):
                    await self._news.wait()
            except TimeoutError:
                await self.look()
        return self.latest

    # --- uploads -----------------------------------------------------------------------------------

    async def send(self, number: int, data: bytes, wanted: Callable[[], bool]) -> None:
        """Hand an upload to the broker, again and again until it has it or it is no more `wanted`."""
        pieces = cut(data, self._connection.max_payload - SLACK, number)
        while wanted():
            try:
                for piece in pieces:
                    await self._js.publish(self._names.up(self._client), piece)
                self.sent_bytes += sum(map(len, pieces))
                return
            except FAILED:
                await asyncio.sleep(AGAIN)

    async def _told(self, message: Msg) -> None:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            self.refusals.append(str(json.loads(message.data)["told"]))
            del self.refusals[:-100]


async def _charter(connection: Client, names: Names) -> Charter:
    js = connection.jetstream(timeout=5)
    try:
        found = await js.get_msg(names.broadcasts, subject=names.spec, direct=True)
        document = json.loads(found.data or b"")
    except (*FAILED, ValueError):
        raise MainstemError(f"{names.run}: there is no such run on this broker") from None
    return draw_up(document, names.run)
