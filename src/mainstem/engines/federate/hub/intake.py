"""The intake of a hub: uploads from the stream, put together, checked, and removed when they are merged.

The server's stream has a limited room for each client, which is why merged and refused uploads must be removed.
"""

import contextlib
import json
import math
import time
from collections import Counter
from collections.abc import Callable

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from mainstem.engines.federate.hub.aggregator import HARMLESS, Aggregator
from mainstem.engines.federate.protocol.chunking import Reassembler
from mainstem.engines.federate.protocol.messages import HEADROOM, Reason, Refused
from mainstem.engines.federate.transport.streams import room
from mainstem.engines.federate.transport.upload_log import UploadLog

NOTICE = 1.0  # seconds between two notices to a client of what was refused


class Intake:
    """Gives uploads to the aggregator; calls `arrived(client, accepted)` after each message."""

    def __init__(
        self,
        aggregator: Aggregator,
        connection: Client,
        js: JetStreamContext,
        arrived: Callable[[str, bool], None],
    ):
        most = aggregator.most_bytes
        self.chunks = -(-most // (connection.max_payload - HEADROOM))  # messages of an upload
        self.log = UploadLog(js, aggregator.document.subjects, self._on_message)
        self._aggregator = aggregator
        self._subjects = aggregator.document.subjects
        self._connection = connection
        self._js = js
        self._arrived = arrived
        self._room = room(aggregator.document, self.chunks)
        self._reassemblers = {name: Reassembler(most) for name in aggregator.document.clients}
        self._begun: dict[str, int] = {}  # sequence of the first chunk of an unfinished upload
        self._accepted: Counter[str] = Counter()  # messages of each client in the stream
        self._purged = 1  # servers up to 2.11 take "before 1" for everything
        self._notified: dict[str, float] = {}  # when each client last got a notice

    @property
    def unfinished(self) -> bool:
        """Whether the last chunks of an upload have not come."""
        return bool(self._begun)

    @property
    def next_unmerged(self) -> int:
        """The sequence of the first upload that is not merged, or of the next one."""
        return self._aggregator.first_waiting(self.log.next)

    @property
    def is_crowded(self) -> bool:
        """Whether a client has used half of its room in the stream."""
        return max(self._accepted.values(), default=0) >= self._room // 2

    async def restart(self) -> None:
        """Reads the stream from its beginning: it is a new one."""
        for reassembler in self._reassemblers.values():
            reassembler.reset()
        self._begun, self._purged = {}, 1
        self._accepted.clear()
        await self.log.read_from(1)

    async def purge(self, stored: int) -> None:
        """Removes uploads from the stream that are refused, or merged in the state that is stored."""
        refused = min([self.next_unmerged, *self._begun.values()])
        purged, accepted = max(stored, refused), self._accepted.copy()
        if purged > self._purged:
            await self._js.purge_stream(self._subjects.upload_stream, seq=purged)
            self._purged = purged
            self._accepted -= accepted

    async def _on_message(self, message: Msg, sequence: int) -> None:
        client = message.subject.rpartition(".")[2]
        if client not in self._reassemblers:
            return
        begun = self._begun.setdefault(client, sequence)
        try:
            data = self._reassembled(client, message.data)
            if data is None:
                return
            self._begun.pop(client)
            self._aggregator.accept(client, data, begun)
        except Refused as refusal:
            self._begun.pop(client, None)
            await self._notify(client, refusal)
            self._arrived(client, False)
            return
        self._accepted[client] += self.chunks
        self._arrived(client, True)

    def _reassembled(self, client: str, data: bytes) -> bytes | None:
        try:
            return self._reassemblers[client].add(data)
        except Refused as refusal:
            self._aggregator.refuse(self._aggregator.indices[client], refusal.reason)
            raise

    async def _notify(self, client: str, refusal: Refused) -> None:
        """Sends a refusal to its client, if an honest client can cause it; one a second."""
        now = time.monotonic()
        if now - self._notified.get(client, -math.inf) < NOTICE:
            return
        if refusal.reason in HARMLESS or refusal.reason is Reason.VERSION:
            self._notified[client] = now
            notice = json.dumps({"reason": refusal.reason, "message": str(refusal)})
            with contextlib.suppress(nats.errors.Error):
                await self._connection.publish(self._subjects.refusals(client), notice.encode())
