"""The newest broadcast on some subjects: heard as it is said, or asked for."""

import asyncio
import contextlib
from collections.abc import Callable

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from mainstem.engines.federate.broker import FAILED
from mainstem.engines.federate.charter import Charter
from mainstem.engines.federate.pieces import Joiner, place
from mainstem.engines.federate.wire import LARGEST, Broadcast, Refused, read_broadcast


class Latest:
    """What a hub said last on `subject(piece)`."""

    def __init__(self, charter: Charter, js: JetStreamContext, subject: Callable[[int | str], str]):
        self.value: Broadcast | None = None
        self.news = asyncio.Event()
        self._charter = charter
        self._js = js
        self._subject = subject
        self._joiner = Joiner(LARGEST)

    async def follow(self, connection: Client) -> None:
        """Hear all that is said from now on, and ask for what was said before."""
        await connection.subscribe(self._subject("*"), cb=self._said)
        await self.look()

    async def look(self) -> None:
        """Ask the broker for the newest."""
        with contextlib.suppress(*FAILED, Refused):
            first = await self._stored(0)
            where = place(first)
            joiner, data = Joiner(LARGEST), None
            for n in range(1 if where is None else where.of):
                data = joiner.add(first if n == 0 else await self._stored(n))
            if data is not None:
                self._take(data)

    async def _stored(self, piece: int) -> bytes:
        names = self._charter.names
        found = await self._js.get_msg(names.broadcasts, subject=self._subject(piece), direct=True)
        return found.data or b""

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
            newer = self.value is None or broadcast.version > self.value.version
            if broadcast.run == self._charter.digest and newer:
                self.value = broadcast
                self.news.set()
