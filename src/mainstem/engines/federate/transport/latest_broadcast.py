"""The latest broadcast of a run: received by subscription, and fetched from the stream when one was missed."""

import asyncio
import contextlib
from collections.abc import Callable

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from mainstem.engines.federate.protocol.chunking import Reassembler, chunk_of
from mainstem.engines.federate.protocol.messages import (
    MAX_BROADCAST,
    Broadcast,
    Refused,
    read_broadcast,
)
from mainstem.engines.federate.protocol.run_document import RunDocument
from mainstem.engines.federate.transport.connection import FAILED


class LatestBroadcast:
    """Holds the newest valid broadcast on `subject(chunk)`."""

    def __init__(
        self, document: RunDocument, js: JetStreamContext, subject: Callable[[int | str], str]
    ):
        self.value: Broadcast | None = None
        self.changed = asyncio.Event()
        self._document = document
        self._js = js
        self._subject = subject
        self._reassembler = Reassembler(MAX_BROADCAST)

    async def follow(self, connection: Client) -> None:
        """Subscribes, and fetches the newest that was published before."""
        await connection.subscribe(self._subject("*"), cb=self._received)
        await self.fetch()

    async def fetch(self) -> None:
        """Fetches the newest broadcast from the stream."""
        with contextlib.suppress(*FAILED, Refused):
            first = await self._stored(0)
            header = chunk_of(first)
            reassembler, data = Reassembler(MAX_BROADCAST), None
            for n in range(1 if header is None else header.total):
                data = reassembler.add(first if n == 0 else await self._stored(n))
            if data is not None:
                self._accept(data)

    async def _stored(self, chunk: int) -> bytes:
        stream = self._document.subjects.broadcast_stream
        found = await self._js.get_msg(stream, subject=self._subject(chunk), direct=True)
        return found.data or b""

    async def _received(self, message: Msg) -> None:
        try:
            data = self._reassembler.add(message.data)
        except Refused:  # a chunk was missed
            await self.fetch()
            return
        if data is not None:
            self._accept(data)

    def _accept(self, data: bytes) -> None:
        with contextlib.suppress(Refused):
            broadcast = read_broadcast(data)
            newer = self.value is None or broadcast.version > self.value.version
            if broadcast.run == self._document.digest and newer:
                self.value = broadcast
                self.changed.set()
