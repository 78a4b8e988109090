"""A client's connection to its run: the newest model comes in, uploads go out until they are in."""

import asyncio
import contextlib
import functools
import json
import logging
import math
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from mainstem.engines.federate import broker
from mainstem.engines.federate.broker import FAILED
from mainstem.engines.federate.charter import Charter, draw_up
from mainstem.engines.federate.latest import Latest
from mainstem.engines.federate.names import Names, token
from mainstem.engines.federate.pieces import cut
from mainstem.engines.federate.wire import LEFT, SHORT, SLACK, Broadcast, missed
from mainstem.errors import BrokenRun, MainstemError

LOST = 2.0  # seconds after which a client that waits asks for the newest model
BEAT = 5.0  # seconds between two signs of life
AWAY = 15.0  # seconds without a sign of the hub's, after which it is away
AGAIN = 0.5  # seconds after which an upload that was not taken is sent again

log = logging.getLogger("mainstem")


class Link:
    """The network side of one client."""

    def __init__(self, connection: Client, charter: Charter, client: str):
        self.charter = charter
        self.refusals: list[str] = []
        self.sent_bytes = 0
        self.beat: dict[str, Any] = {}  # what goes with the next sign of life
        self._client = client
        self._names = charter.names
        self._connection = connection
        self._js: JetStreamContext = connection.jetstream(timeout=5)
        self._models = Latest(charter, self._js, self._names.model)
        self._candidates = Latest(charter, self._js, self._names.candidate)
        self._order = asyncio.Lock()
        self._closed = False
        self._since = math.inf  # since when it waits for news
        self._k = charter.clients.index(client)
        self._missed = 0  # lockstep: the step whose upload of this client the hub missed, when it was heard last
        self._pulse = time.monotonic()  # when the hub was heard last

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
        await self._connection.subscribe(self._names.refusals(self._client), cb=self._told)
        await self._connection.subscribe(self._names.pulse, cb=self._beaten)
        self._connection._reconnected_cb = self._models.look
        await self._models.follow(self._connection)
        await self._candidates.follow(self._connection)
        self._beating = asyncio.create_task(self._beat())

    async def close(self) -> None:
        """Say what is left to say, and go."""
        self._beating.cancel()
        self._closed = True
        self._models.news.set()
        if self.connected:
            with contextlib.suppress(*FAILED):
                await self._connection.publish(self._names.here(self._client), LEFT)
                await self._connection.flush(2)
        await self._connection.close()

    # --- who is there ------------------------------------------------------------------------------

    @property
    def connected(self) -> bool:
        """Whether the broker is there."""
        return bool(self._connection.is_connected)

    @property
    def away(self) -> bool:
        """Whether the hub, or the broker before it, has not been heard for a while."""
        return time.monotonic() - self._pulse > AWAY

    async def _beaten(self, message: Msg) -> None:
        self._pulse = time.monotonic()
        self._missed = missed(message.data, self._k)
        if self._missed:
            self._models.news.set()

    async def _beat(self) -> None:
        """Now and then say that this client is there; say to its user if the hub is not; look for news."""
        alone, looking = False, None
        for n in range(2**62):
            if self.away != alone:
                alone = self.away
                what = "is away: this client goes on alone" if alone else "is back"
                log.warning("%s: client %s: the hub %s", self._names.run, self._client, what)
            if n % BEAT == 0:
                with contextlib.suppress(*FAILED):
                    told = json.dumps(self.beat).encode() if self.beat else b""
                    await self._connection.publish(self._names.here(self._client), told)
            await asyncio.sleep(1.0)
            if time.monotonic() - self._since > LOST and (looking is None or looking.done()):
                looking = asyncio.create_task(self._looked())

    async def _looked(self) -> None:
        await self._models.look()
        self._models.news.set()

    # --- models ------------------------------------------------------------------------------------

    @property
    def latest(self) -> Broadcast | None:
        """The newest model."""
        return self._models.value

    @property
    def candidate(self) -> Broadcast | None:
        """The newest model to be compared with."""
        return self._candidates.value

    async def news(self) -> None:
        """Wait for a newer model, for a word that the hub misses an upload, or for a while."""
        self._models.news.clear()
        self._since = time.monotonic()
        try:
            await self._models.news.wait()
        finally:
            self._since = math.inf
        if self._closed:
            raise BrokenRun(f"{self._names.run}: client {self._client} has left: join again")

    # --- uploads -----------------------------------------------------------------------------------

    async def agree(self, step: int, data: bytes) -> Broadcast:
        """Lockstep: send the upload of this step; the model that was made then, or a later one.

        A short upload leaves without a wait for the broker's word: the model is that word, and the hub says whom
        it misses. Missed once, it may still be on its way; missed again after all that was written is with the
        broker, it is lost.
        """
        surely = functools.partial(self.send, step, data, lambda: not self._merged(step))
        # One after the other, whenever the hub misses it:
        remedies: list[Callable[[], Awaitable[None]]] = [self._written, surely]
        self._missed = 0
        if not self._merged(step) and not await self._left(data):
            await surely()
            remedies = []
        while self.latest is None or self.latest.step < step:
            await self.news()
            if self._missed > step:  # the model was made, and lost on its way
                await self._models.look()
            elif self._missed == step and remedies:
                await remedies.pop(0)()
            self._missed = 0
        return self.latest

    async def _left(self, data: bytes) -> bool:
        """Whether an upload has left at once.

        Not a long one, because many of them at once would be dropped; nor where there is a deadline, because a
        model may then come without this client.
        """
        short = min(SHORT, self._connection.max_payload - SLACK)
        if len(data) > short or self.charter.rules.deadline is not None:
            return False
        try:
            await self._connection.publish(self._names.up(self._client), data)
        except FAILED:
            return False
        self.sent_bytes += len(data)
        return True

    async def _written(self) -> None:
        """Wait until the broker has all that was written so far."""
        with contextlib.suppress(*FAILED):
            await self._connection.flush(5)  # seconds

    def _merged(self, step: int) -> bool:
        return self.latest is not None and bool(self.latest.merged[self._k] >= step)

    async def send(self, number: int, data: bytes, wanted: Callable[[], bool]) -> None:
        """Hand an upload to the broker, again and again until it has it or it is no more `wanted`.

        One after the other: the hub takes what comes after a newer one for a repetition.
        """
        pieces = cut(data, self._connection.max_payload - SLACK, number)
        async with self._order:
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
        return _drawn_up(found.data or b"", names.run)
    except (*FAILED, json.JSONDecodeError):
        raise MainstemError(f"{names.run}: there is no such run on this broker") from None


@functools.lru_cache(maxsize=16)
def _drawn_up(data: bytes, run: str) -> Charter:
    """Once for all clients in this process."""
    return draw_up(json.loads(data), run)
