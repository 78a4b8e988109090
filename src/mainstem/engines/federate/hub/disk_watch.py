"""The watch on the NATS server's disk: notices that nothing is stored, and removes streams that remain broken.

A server whose disk is full answers questions and leaves messages unanswered. A stream that could not write remains
so until the server is restarted, also when there is room again (nats-server 2.15): it must be made anew.
"""

from collections.abc import Callable

import nats.errors
from nats.js import JetStreamContext
from nats.js.api import StreamConfig

from mainstem.engines.federate import event_log
from mainstem.engines.federate.protocol.subjects import Subjects

TIMEOUT = 5.0  # seconds within which a message must be stored


class DiskWatch:
    """Sends a message to each stream of a run; `status` makes the one for broadcasts."""

    def __init__(self, js: JetStreamContext, subjects: Subjects, status: Callable[[], bytes]):
        self._js = js
        self._run = subjects.run
        self._probe = f"ms-{subjects.run}-probe"
        self._messages: dict[str, tuple[str, Callable[[], bytes]]] = {
            subjects.upload_stream: (subjects.upload("$probe"), bytes),
            subjects.broadcast_stream: (subjects.status, status),
            f"KV_{subjects.bucket}": (f"$KV.{subjects.bucket}.probe", bytes),
        }
        self.stores = True  # what it is sent, as far as is known

    async def removed(self) -> bool:
        """Whether streams were removed because they do not store although there is room."""
        failed = []
        for stream in self._messages:
            if not await self._is_stored(stream):
                failed.append(stream)
                self.stores = False  # at once: the other streams take seconds
        if not failed:
            self.stores = True
        if self.stores or not await self._has_room():
            return False
        for stream in failed:
            await self._js.delete_stream(stream)
        self.stores = True
        text = "the NATS server has room again: streams are made anew"
        event_log.warning("server_has_room", text, run=self._run)
        return True

    async def _is_stored(self, stream: str) -> bool:
        await self._js.stream_info(stream)  # raises if the server answers nothing at all
        subject, message = self._messages[stream]
        return await self._answered(subject, message())

    async def _has_room(self) -> bool:
        """Whether a new stream stores a message."""
        await self._js.add_stream(StreamConfig(name=self._probe, subjects=[self._probe]))
        try:
            return await self._answered(self._probe, b"")
        finally:
            await self._js.delete_stream(self._probe)

    async def _answered(self, subject: str, message: bytes) -> bool:
        """Whether the server answers that it has stored the message, or why it has not."""
        try:
            await self._js.publish(subject, message, timeout=TIMEOUT)
        except TimeoutError:
            return False
        except nats.errors.Error as error:
            return "space" not in str(error)
        return True
