"""The latest broadcast of a run: received by subscription, and fetched from the stream when one was missed.

A broadcast of a later revision of the run document is read with that revision, which is fetched first.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from mainstem.engines.federate import event_log
from mainstem.engines.federate.protocol.chunking import Reassembler, chunk_of
from mainstem.engines.federate.protocol.messages import Broadcast, Reason, Refused, revision_of
from mainstem.engines.federate.protocol.run_document import RunDocument
from mainstem.engines.federate.transport.connection import FAILED


class LatestBroadcast:
    """Holds the newest valid broadcast on `subject(chunk)`, and counts those that it refuses.

    `renewed()` returns the newest revision of the document.
    """

    def __init__(
        self,
        document: RunDocument,
        subject: Callable[[int | str], str],
        renewed: Callable[[], Awaitable[RunDocument]],
    ):
        self.value: Broadcast | None = None
        self.changed = asyncio.Event()
        self._document = document
        self._subject = subject
        self._renewed = renewed
        self.refused: Counter[str] = Counter()
        self._reassembler = Reassembler(document.most_broadcast_bytes)

    async def follow(self, connection: Client, js: JetStreamContext) -> None:
        """Subscribes, and fetches the newest that was published before."""
        self._js = js
        await connection.subscribe(self._subject("*"), cb=self._received)
        await self.fetch()

    async def fetch(self) -> None:
        """Fetches the newest broadcast from the stream."""
        with contextlib.suppress(*FAILED, Refused):
            first = await self._stored(0)
            header = chunk_of(first)
            reassembler, data = Reassembler(self._document.most_broadcast_bytes), None
            for n in range(1 if header is None else header.total):
                data = reassembler.add(first if n == 0 else await self._stored(n))
            if data is not None:
                await self._accept(data)

    async def _stored(self, chunk: int) -> bytes:
        stream = self._document.subjects.broadcast_stream
        found = await self._js.get_msg(stream, subject=self._subject(chunk), direct=True)
        return found.data or b""

    async def _received(self, message: Msg) -> None:
        try:
            data = self._reassembler.add(message.data)
        except Refused as refusal:
            if refusal.reason is not Reason.CHUNK:
                self._refuse(refusal)
                return
            await self.fetch()  # a chunk was missed
            return
        if data is not None:
            await self._accept(data)

    async def _accept(self, data: bytes) -> None:
        if revision_of(data) > self._document.revision:
            self._document = await self._renewed()
            self._reassembler.most = self._document.most_broadcast_bytes
        try:
            broadcast = self._document.read_broadcast(data)
        except Refused as refusal:
            self._refuse(refusal)
            return
        if self.value is None or broadcast.age > self.value.age:
            self.value = broadcast
            self.changed.set()

    def _refuse(self, refusal: Refused) -> None:
        """Counts a refusal, and logs the first, the tenth, the hundredth and so on."""
        self.refused[refusal.reason] += 1
        count = self.refused.total()
        if str(count).strip("0") == "1":
            run = self._document.rules.run
            text = f"a broadcast was refused, number {count}: {refusal}"
            event_log.warning("broadcast_refused", text, run=run, reason=refusal.reason)
