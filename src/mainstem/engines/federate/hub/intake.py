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

from mainstem.engines.federate import event_log
from mainstem.engines.federate.hub.aggregator import Aggregator
from mainstem.engines.federate.hub.presence import Presence
from mainstem.engines.federate.protocol.chunking import Reassembler
from mainstem.engines.federate.protocol.messages import HEADROOM, Refused, session_of
from mainstem.engines.federate.transport.streams import room_for
from mainstem.engines.federate.transport.upload_log import UploadLog

NOTICE = 1.0  # seconds between two notices to a client of what was refused
MOST_NOTIFIED = 4096  # sessions that are remembered
LINE = 60.0  # seconds between two lines of the log on what of a client was refused


class Intake:
    """Gives uploads to the aggregator; calls `arrived` with the client and the refusal, if any, of each upload."""

    def __init__(
        self,
        aggregator: Aggregator,
        connection: Client,
        js: JetStreamContext,
        presence: Presence,
        arrived: Callable[[str, Refused | None], None],
    ):
        most = aggregator.most_bytes
        self.chunks = -(-most // (connection.max_payload - HEADROOM))  # messages of an upload
        self.log = UploadLog(js, aggregator.document.subjects, self._on_message)
        self._aggregator = aggregator
        self._subjects = aggregator.document.subjects
        self._connection = connection
        self._js = js
        self._presence = presence
        self._arrived = arrived
        self._reassemblers: dict[str, Reassembler] = {}
        self.follow_roster()
        self._begun: dict[str, int] = {}  # sequence of the first chunk of an unfinished upload
        self._accepted: Counter[str] = Counter()  # messages of each client in the stream
        self._purged = 1  # servers up to 2.11 take "before 1" for everything
        self._notified: dict[tuple[str, int], float] = {}  # when each session last got a notice
        self._lines: dict[str, float] = {}  # when a refusal of each client was last logged

    def follow_roster(self) -> None:
        """Reads uploads of the clients that are in the roster now, with the room that the rules give them."""
        document, most = self._aggregator.document, self._aggregator.most_bytes
        known = self._reassemblers
        self._reassemblers = {
            name: known.get(name) or Reassembler(most) for name in document.clients
        }
        self.room = room_for(self._aggregator.most_pending, self.chunks)

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
        return max(self._accepted.values(), default=0) >= self.room // 2

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
            self._aggregator.accept(client, data, begun, self._presence.is_present(client))
        except Refused as refusal:
            self._begun.pop(client, None)
            self._log(client, refusal)
            await self.notify(client, refusal, session_of(message.data))
            self._arrived(client, refusal)
            return
        self._accepted[client] += self.chunks
        self._arrived(client, None)

    def _reassembled(self, client: str, data: bytes) -> bytes | None:
        try:
            return self._reassemblers[client].add(data)
        except Refused as refusal:
            self._aggregator.records.refuse(self._aggregator.indices[client], refusal.reason)
            raise

    def _log(self, client: str, refusal: Refused) -> None:
        """Logs a refusal; one a minute of each client. The status counts all."""
        now = time.monotonic()
        if now - self._lines.get(client, -math.inf) >= LINE:
            self._lines[client] = now
            run, total = self._subjects.run, self._refused(client).total()
            text = f"an upload was refused: {refusal}; {total} since the run began"
            event_log.warning(
                "upload_refused", text, run=run, client=client, reason=refusal.reason, total=total
            )

    def _refused(self, client: str) -> Counter[str]:
        return self._aggregator.records.refused[self._aggregator.indices[client]]

    async def notify(self, client: str, refusal: Refused, session: int) -> None:
        """Sends a refusal to a session of a client; one a second."""
        now = time.monotonic()
        if now - self._notified.get((client, session), -math.inf) < NOTICE:
            return
        if len(self._notified) > MOST_NOTIFIED:
            self._notified.clear()
        self._notified[client, session] = now
        notice = {"reason": refusal.reason, "message": str(refusal), "session": session}
        with contextlib.suppress(nats.errors.Error):
            await self._connection.publish(
                self._subjects.refusals(client), json.dumps(notice).encode()
            )
