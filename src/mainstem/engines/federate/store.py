"""The hub's state on the broker: one key, written only by the hub that wrote it last.

Its value begins with a mark of the hub that wrote it. A write that nobody answered may have arrived all the
same; the mark tells then whether the newer value is this hub's own.
"""

import secrets
from functools import partial

import nats.js.errors
from nats.js import JetStreamContext
from nats.js.api import StorageType
from nats.js.kv import KeyValue

from mainstem.engines.federate.insist import insist
from mainstem.engines.federate.pieces import Joiner, cut
from mainstem.errors import BrokenRun

_HEAD = "state"
_MARK = 8  # bytes


class Store:
    """Bytes under one name, replaced as a whole."""

    def __init__(self, bucket: KeyValue, name: str, most: int):
        self._bucket = bucket
        self._name = name
        self._most = most
        self._mark = secrets.token_bytes(_MARK)
        self._revision = 0
        self._turn = 0

    @classmethod
    async def open(cls, js: JetStreamContext, name: str, most: int, replicas: int = 1) -> "Store":
        """The store of this name, made if there is none; a message has `most` bytes at most."""
        try:
            bucket = await js.key_value(name)
        except nats.js.errors.BucketNotFoundError:
            bucket = await js.create_key_value(
                bucket=name, history=1, storage=StorageType.FILE, replicas=replicas
            )
        return cls(bucket, name, most)

    async def read(self) -> bytes | None:
        """What is stored, if anything."""
        try:
            entry = await self._bucket.get(_HEAD)
        except nats.js.errors.KeyNotFoundError:
            return None
        self._revision = entry.revision or 0
        value = (entry.value or b"")[_MARK:]
        if value[:1] == b"=":
            return value[1:]
        turn, count = map(int, value[1:].decode().split())
        self._turn = turn
        joiner, whole = Joiner(2**62), None
        for n in range(count):
            whole = joiner.add((await self._bucket.get(f"piece-{turn}-{n}")).value or b"")
        return whole

    async def write(self, data: bytes) -> None:
        """Replace it. Large data goes first into pieces aside, and only the last write makes them count."""
        if _MARK + 1 + len(data) <= self._most:
            value = b"=" + data
        else:
            self._turn = 1 - self._turn
            pieces = cut(data, self._most, self._revision)
            for n, piece in enumerate(pieces):
                await insist(partial(self._bucket.put, f"piece-{self._turn}-{n}", piece))
            value = f"+{self._turn} {len(pieces)}".encode()
        self._revision = await insist(partial(self._replace, self._mark + value))

    async def _replace(self, value: bytes) -> int:
        """The revision that `value` has now; an earlier attempt may have made it without a word."""
        try:
            return await self._bucket.update(_HEAD, value, last=self._revision)
        except nats.js.errors.KeyWrongLastSequenceError:
            found = await self._bucket.get(_HEAD)
        if found.revision == self._revision:
            raise TimeoutError  # a copy that is behind has answered: ask again
        if (found.value or b"")[:_MARK] != self._mark:
            raise BrokenRun(f"{self._name}: another hub has taken this run over")
        return found.revision or 0
