"""The uploads of a client that are not merged yet: sent in the background, and again in a new epoch of the run.

Uploads are added by the thread that learns, and sent by the one with the event loop.
"""

import asyncio
import threading
from collections.abc import Mapping

from mainstem.engines.federate.client.uplink import Uplink
from mainstem.engines.federate.protocol.messages import held_version, in_epoch, in_session
from mainstem.engines.federate.transport import tasks


class PendingUploads:
    """Encoded uploads, by step."""

    def __init__(self, uplink: Uplink, client: str):
        self.sending: set[asyncio.Task[None]] = set()  # until the server has the upload
        self._uplink = uplink
        self._client = client
        self._lock = threading.Lock()
        self._uploads: dict[int, bytes] = {}
        self._sent: dict[int, bytes] = {}  # those that are sent or being sent

    def __len__(self) -> int:
        return len(self._uploads)

    def __getitem__(self, step: int) -> bytes:
        return self._uploads[step]

    @property
    def first(self) -> int:
        """The step of the earliest; 0 if there is none."""
        return min(self.by_step(), default=0)

    def by_step(self) -> dict[int, bytes]:
        """All of them."""
        with self._lock:
            return dict(self._uploads)

    def add(self, step: int, data: bytes) -> None:
        """Adds the upload of a step."""
        with self._lock:
            self._uploads[step] = data

    def restore(self, uploads: Mapping[int, bytes], session: int) -> None:
        """Takes over uploads that an earlier session has stored."""
        with self._lock:
            self._uploads = {
                step: in_session(data, self._client, session) for step, data in uploads.items()
            }

    def enter(self, epoch: int, version: int) -> None:
        """Rewrites them for a new epoch, in which they are sent again."""
        with self._lock:
            self._uploads = {
                step: in_epoch(data, epoch, version) for step, data in self._uploads.items()
            }

    def drop(self, received: int, oldest: int) -> None:
        """Drops those up to the step `received`, and those learnt from a model older than `oldest`."""
        with self._lock:
            self._uploads = {
                step: data
                for step, data in self._uploads.items()
                if step > received and held_version(data) >= oldest
            }

    def send(self) -> None:
        """Sends those that were never sent, or not in this epoch."""
        pending = self.by_step()
        self._sent = {step: data for step, data in self._sent.items() if step in pending}
        for step, data in sorted(pending.items()):
            if self._sent.get(step) is not data:
                self._sent[step] = data
                self._send(step, data)

    def _send(self, step: int, data: bytes) -> None:
        """Sends an upload in the background, until the server has it or it is no longer pending."""
        work = self._uplink.send(step, data, lambda: self._uploads.get(step) is data)
        task = tasks.start(work, f"client {self._client}: an upload")
        self.sending.add(task)
        task.add_done_callback(self.sending.discard)

    async def wait_until_sent(self, timeout: float) -> None:
        """Waits until the server has all of them, or for so many seconds."""
        if self.sending:
            await asyncio.wait(self.sending, timeout=timeout)
