"""Reads the upload stream in order: replaces a consumer that gets no messages, notices a stream that was set back.

A consumer may stop without an error: nats-py's ordered consumer may lose its first messages after a reset of
the connection. So what the stream holds is compared with what was read.
"""

import contextlib
from collections.abc import Awaitable, Callable

import nats.errors
import nats.js.errors
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig, DeliverPolicy

from mainstem.engines.federate import event_log
from mainstem.engines.federate.protocol.subjects import Subjects

HEARTBEAT = 1.0  # seconds; nats-py creates the consumer anew if two are missed
PATIENCE = 3  # checks without progress after which the consumer is opened anew


class UploadLog:
    """Calls `received` with each upload and its sequence, in the order of the stream."""

    def __init__(
        self,
        js: JetStreamContext,
        subjects: Subjects,
        received: Callable[[Msg, int], Awaitable[None]],
    ):
        self.next = 1  # sequence of the next upload
        self._js = js
        self._subjects = subjects
        self._received = received
        self._subscription: JetStreamContext.PushSubscription | None = None
        self._stuck = 0, 0  # a sequence, and for how many checks it is the next

    async def read_from(self, sequence: int) -> None:
        """Reads the stream from this sequence on."""
        before, self._subscription = self._subscription, None
        self.next = max(1, sequence)
        self._stuck = 0, 0
        if before is not None:
            with contextlib.suppress(nats.errors.Error):  # the server may have ended it
                await before.unsubscribe()
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=self.next
        )
        self._subscription = await self._js.subscribe(
            self._subjects.upload("*"),
            stream=self._subjects.upload_stream,
            config=config,
            ordered_consumer=True,
            idle_heartbeat=HEARTBEAT,
            pending_bytes_limit=0,  # no limit: nats-py would drop messages without an error
            cb=self._on_message,
        )

    async def _on_message(self, message: Msg) -> None:
        sequence = message.metadata.sequence.stream
        if sequence >= self.next:
            self.next = sequence + 1
            await self._received(message, sequence)

    async def check(self) -> bool:
        """Whether the stream still knows of all uploads that were read. Replaces a consumer that gets nothing."""
        read = self.next  # before the question: more may be read until the answer comes
        try:
            state = (await self._js.stream_info(self._subjects.upload_stream)).state
        except nats.js.errors.NotFoundError:
            return False
        if state.last_seq + 1 < read:
            return False
        sequence, count = self._stuck
        if state.last_seq < self.next or not state.messages:
            self._stuck = 0, 0
        elif sequence != self.next:
            self._stuck = self.next, 1
        elif count < PATIENCE:
            self._stuck = self.next, count + 1
        else:
            text = f"uploads from number {self.next} on are on the NATS server and do not come"
            text += ": they are asked for anew"
            event_log.warning("consumer_stuck", text, run=self._subjects.run)
            await self.read_from(self.next)
        return True
