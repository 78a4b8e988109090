"""The hub's state in a key-value bucket: a write fails if another hub has written since this one read or wrote.

The value begins with an id of the hub process that wrote it, and the age of the state. A write that was not
answered may have arrived; the id shows whether the newer value is this hub's own. A value that is older than what
this hub has written shows that the server was restored from a backup: it is replaced.
"""

import asyncio
import contextlib
import secrets
import struct
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import nats.errors
import nats.js.errors
from nats.js import JetStreamContext
from nats.js.api import StorageType
from nats.js.kv import KeyValue

from mainstem.engines.federate.protocol.chunking import Reassembler, split
from mainstem.engines.federate.protocol.messages import Refused
from mainstem.engines.federate.transport.retry import INTERVAL, retry
from mainstem.errors import BrokenRun

ATTEMPTS = 5  # to read a state of several chunks, while another hub may be writing
_KEY = "state"
_HEAD = struct.Struct("<8sQQ")  # id of the writer, epoch, version


class StoredState(NamedTuple):
    """A state of a hub, as bytes."""

    epoch: int
    version: int
    data: bytes

    @property
    def age(self) -> tuple[int, int]:
        """Later states have a larger one."""
        return self.epoch, self.version


class StateStore:
    """Bytes that are replaced as a whole."""

    def __init__(
        self,
        js: JetStreamContext,
        name: str,
        most: int,
        replicas: int,
        given_up: Callable[[], bool],
    ):
        self._js = js
        self._name = name
        self._most = most
        self._replicas = replicas
        self._given_up = given_up
        self._bucket: KeyValue
        self._id = secrets.token_bytes(8)
        self._revision = 0
        self._age = 0, 0  # of what this hub has written or read
        self._predecessor: bytes | None = None  # the id of the hub whose state was read
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
        store = cls(js, name, most, replicas, given_up)
        await store.create()
        return store

    async def create(self) -> None:
        """Creates the bucket if it does not exist."""
        try:
            self._bucket = await self._js.key_value(self._name)
        except nats.js.errors.BucketNotFoundError:
            self._bucket = await self._js.create_key_value(
                bucket=self._name, history=1, storage=StorageType.FILE, replicas=self._replicas
            )

    async def read(self) -> StoredState | None:
        """The stored state; None if there is none."""
        for _ in range(ATTEMPTS):
            self._revision, value = await self._found()
            if not value:
                return None
            self._predecessor, *age = _HEAD.unpack_from(value)
            self._age = age[0], age[1]
            kind, rest = value[_HEAD.size : _HEAD.size + 1], value[_HEAD.size + 1 :]
            data = rest if kind == b"=" else await self._joined(rest.decode())
            if data is not None:
                return StoredState(*self._age, data)
            await asyncio.sleep(INTERVAL)
        raise BrokenRun(f"{self._name}: a part of the stored state is missing")

    async def _joined(self, pieces: str) -> bytes | None:
        """The chunks put together; None if one is missing or of another state: a hub has just written again."""
        prefix, count = pieces.split()
        reassembler, whole = Reassembler(2**62), None
        with contextlib.suppress(nats.js.errors.KeyNotFoundError, Refused):
            for n in range(int(count)):
                whole = reassembler.add((await self._bucket.get(f"{prefix}.{n}")).value or b"")
        return whole

    async def write(self, state: StoredState) -> None:
        """Replaces the state. Large data goes in chunks under keys of this hub; only the last write names them."""
        if _HEAD.size + 1 + len(state.data) <= self._most:
            value = b"=" + state.data
        else:
            self._slot = 1 - self._slot
            prefix = f"piece.{self._id.hex()}.{self._slot}"
            chunks = split(state.data, self._most, self._revision)
            for n, chunk in enumerate(chunks):
                await retry(partial(self._bucket.put, f"{prefix}.{n}", chunk), self._given_up)
            value = f"+{prefix} {len(chunks)}".encode()
        value = _HEAD.pack(self._id, *state.age) + value
        self._revision = await retry(partial(self._replace, value), self._given_up)
        self._age = state.age
        if self._predecessor is not None:
            await self._forget(self._predecessor)
            self._predecessor = None

    async def _forget(self, writer: bytes) -> None:
        """Removes the chunks of a hub that no longer writes."""
        with contextlib.suppress(nats.errors.Error, TimeoutError):
            subject = f"$KV.{self._name}.piece.{writer.hex()}.>"
            await self._js.purge_stream(f"KV_{self._name}", subject=subject)

    async def _replace(self, value: bytes) -> int:
        """Writes `value` and returns its revision. An earlier attempt without an answer may have written it."""
        try:
            return await self._bucket.update(_KEY, value, last=self._revision)
        except nats.js.errors.KeyWrongLastSequenceError:
            revision, found = await self._found()
        if revision == self._revision:
            raise TimeoutError  # a replica that is behind has answered: retry
        if found == value:
            return revision
        if self._is_later(found):
            await self._forget(self._id)
            raise self._taken_over()
        self._revision = revision
        raise TimeoutError  # the server was restored from a backup: retry, in the place of what it has

    async def _found(self) -> tuple[int, bytes]:
        """The revision and the value in the bucket."""
        try:
            entry = await self._bucket.get(_KEY)
        except nats.js.errors.KeyNotFoundError:
            return 0, b""
        return entry.revision or 0, entry.value or b""

    def _is_later(self, found: bytes) -> bool:
        """Whether a value is of another hub, and not older than the state of this one."""
        if len(found) < _HEAD.size:
            return False
        writer, *age = _HEAD.unpack_from(found)
        return writer != self._id and tuple(age) >= self._age

    async def check(self) -> None:
        """Raises `BrokenRun` if another hub has taken the run over."""
        revision, found = await self._found()
        if revision != self._revision and self._is_later(found):
            raise self._taken_over()

    def _taken_over(self) -> BrokenRun:
        return BrokenRun(f"{self._name}: another hub has taken this run over")
