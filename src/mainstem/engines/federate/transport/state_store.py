"""The hub's state in a key-value bucket: a write fails if another hub has written since this one read or wrote.

The value begins with an id of the hub process that wrote it. A write that was not answered may have arrived; the
id shows whether the newer value is this hub's own.
"""

import secrets
from collections.abc import Callable
from functools import partial

import nats.js.errors
from nats.js import JetStreamContext
from nats.js.api import StorageType
from nats.js.kv import KeyValue

from mainstem.engines.federate.protocol.chunking import Reassembler, split
from mainstem.engines.federate.transport.retry import retry
from mainstem.errors import BrokenRun

_KEY = "state"
_ID = 8  # bytes


class StateStore:
    """Bytes that are replaced as a whole."""

    def __init__(self, bucket: KeyValue, name: str, most: int, given_up: Callable[[], bool]):
        self._bucket = bucket
        self._name = name
        self._most = most
        self._id = secrets.token_bytes(_ID)
        self._revision = 0
        self._given_up = given_up
        self._slot = 0  # chunks of large data go to the slot that is not in use

    @classmethod
    async def open(
        cls,
        js: JetStreamContext,
        name: str,
        most: int,
        replicas: int = 1,
        given_up: Callable[[], bool] = lambda: False,
    ) -> "StateStore":
        """Opens the bucket `name`, created if it does not exist; a message has at most `most` bytes.

        Writes are repeated until they are answered or `given_up`.
        """
        try:
            bucket = await js.key_value(name)
        except nats.js.errors.BucketNotFoundError:
            bucket = await js.create_key_value(
                bucket=name, history=1, storage=StorageType.FILE, replicas=replicas
            )
        return cls(bucket, name, most, given_up)

    async def read(self) -> bytes | None:
        """The stored bytes; None if there are none."""
        try:
            entry = await self._bucket.get(_KEY)
        except nats.js.errors.KeyNotFoundError:
            return None
        self._revision = entry.revision or 0
        value = (entry.value or b"")[_ID:]
        if value[:1] == b"=":
            return value[1:]
        self._slot, count = map(int, value[1:].decode().split())
        reassembler, whole = Reassembler(2**62), None
        for n in range(count):
            whole = reassembler.add(
                (await self._bucket.get(f"piece-{self._slot}-{n}")).value or b""
            )
        return whole

    async def write(self, data: bytes) -> None:
        """Replaces the bytes. Large data goes in chunks under other keys; only the last write refers to them."""
        if _ID + 1 + len(data) <= self._most:
            value = b"=" + data
        else:
            self._slot = 1 - self._slot
            chunks = split(data, self._most, self._revision)
            for n, chunk in enumerate(chunks):
                put = partial(self._bucket.put, f"piece-{self._slot}-{n}", chunk)
                await retry(put, self._given_up)
            value = f"+{self._slot} {len(chunks)}".encode()
        self._revision = await retry(partial(self._replace, self._id + value), self._given_up)

    async def _replace(self, value: bytes) -> int:
        """Writes `value` and returns its revision. An earlier attempt without an answer may have written it."""
        try:
            return await self._bucket.update(_KEY, value, last=self._revision)
        except nats.js.errors.KeyWrongLastSequenceError:
            found = await self._bucket.get(_KEY)
        if found.revision == self._revision:
            raise TimeoutError  # a replica that is behind has answered: retry
        if (found.value or b"")[:_ID] != self._id:
            raise BrokenRun(f"{self._name}: another hub has taken this run over")
        return found.revision or 0
