"""The exchange of a round written on nats-py itself: what the broker and its library cost without us.

With JetStream (`stored`): every client publishes its upload to a stream and is acknowledged, the hub reads them
with an ordered consumer, adds them up, puts its state into a key-value bucket by compare-and-set, and publishes
the model to a stream that keeps the newest. Without: the same messages, and nothing is kept anywhere.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from multiprocessing.synchronize import Event
from typing import Any

import nats
import numpy as np
from nats.aio.client import Client as Connection
from nats.aio.msg import Msg

STEP = 0.01
Say = Callable[[bytes], Awaitable[None]]
Heard = Callable[[Msg], Awaitable[None]]


def hub(url: str, run: str, clients: int, size: int, stored: bool, ready: Event) -> None:
    """Sums of uploads, round after round, until the process is ended."""
    asyncio.run(_serve(url, run, clients, size, stored, ready))


async def _serve(url: str, run: str, clients: int, size: int, stored: bool, ready: Event) -> None:
    connection = await nats.connect(url)
    inbox: asyncio.Queue[bytes] = asyncio.Queue()

    async def heard(message: Msg) -> None:
        inbox.put_nowait(message.data)

    say = await (_with_streams if stored else _without)(connection, run, heard)
    ready.set()
    model = np.zeros(size, np.float32)
    while True:
        uploads = [np.frombuffer(await inbox.get(), np.float32) for _ in range(clients)]
        model = model - np.float32(STEP / clients) * np.sum(uploads, axis=0)
        await say(model.tobytes())


async def _with_streams(connection: Connection, run: str, heard: Heard) -> Say:
    js = connection.jetstream()
    await js.add_stream(name=f"{run}-up", subjects=[f"{run}.up.*"], max_msgs_per_subject=64)
    await js.add_stream(name=f"{run}-down", subjects=[f"{run}.model"], max_msgs_per_subject=1)
    bucket = await js.create_key_value(bucket=run, history=1)
    await js.subscribe(f"{run}.up.*", stream=f"{run}-up", ordered_consumer=True, cb=heard)
    revision = 0

    async def say(model: bytes) -> None:
        nonlocal revision
        revision = await bucket.update("state", model, last=revision)
        await js.publish(f"{run}.model", model)

    return say


async def _without(connection: Connection, run: str, heard: Heard) -> Say:
    await connection.subscribe(f"{run}.up.*", cb=heard)
    await connection.flush()

    async def say(model: bytes) -> None:
        await connection.publish(f"{run}.model", model)

    return say


class Client:
    """Says what it is given and waits for the next model."""

    def __init__(self, connection: Connection, run: str, name: str, stored: bool):
        self._publish: Any = (connection.jetstream() if stored else connection).publish
        self._subject = f"{run}.up.{name}"
        self._news = asyncio.Event()

    async def said(self, message: Msg) -> None:
        """A model came."""
        self.model = np.frombuffer(message.data, np.float32)
        self._news.set()

    async def step(self, upload: bytes) -> None:
        """One round."""
        self._news.clear()
        await self._publish(self._subject, upload)
        await self._news.wait()


@contextlib.asynccontextmanager
async def joined(url: str, run: str, clients: int, stored: bool) -> AsyncIterator[list[Client]]:
    """All clients, each with a connection of its own."""
    async with contextlib.AsyncExitStack() as stack:
        found = []
        for k in range(clients):
            connection = await stack.enter_async_context(await nats.connect(url))
            client = Client(connection, run, str(k), stored)
            await connection.subscribe(f"{run}.model", cb=client.said)
            await connection.flush()
            found.append(client)
        yield found
