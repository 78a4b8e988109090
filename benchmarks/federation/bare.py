"""Baseline: the exchange of a round on nats-py alone, to measure the cost of the NATS server and its library.

With JetStream (`stored`): every client publishes its upload to a stream and is acknowledged, the hub reads them
with an ordered consumer, adds them up, puts its state into a key-value bucket by compare-and-set, and publishes
the model to a stream that retains the newest. Without: the same messages, and nothing is stored.
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
Publish = Callable[[bytes], Awaitable[None]]
Receive = Callable[[Msg], Awaitable[None]]


def hub(url: str, run: str, clients: int, size: int, stored: bool, ready: Event) -> None:
    """Sums uploads, round after round, until the process is terminated."""
    asyncio.run(_serve(url, run, clients, size, stored, ready))


async def _serve(url: str, run: str, clients: int, size: int, stored: bool, ready: Event) -> None:
    connection = await nats.connect(url)
    inbox: asyncio.Queue[bytes] = asyncio.Queue()

    async def receive(message: Msg) -> None:
        inbox.put_nowait(message.data)

    publish = await (_with_streams if stored else _without)(connection, run, receive)
    ready.set()
    model = np.zeros(size, np.float32)
    while True:
        uploads = [np.frombuffer(await inbox.get(), np.float32) for _ in range(clients)]
        model = model - np.float32(STEP / clients) * np.sum(uploads, axis=0)
        await publish(model.tobytes())


async def _with_streams(connection: Connection, run: str, receive: Receive) -> Publish:
    js = connection.jetstream()
    await js.add_stream(name=f"{run}-up", subjects=[f"{run}.up.*"], max_msgs_per_subject=64)
    await js.add_stream(name=f"{run}-down", subjects=[f"{run}.model"], max_msgs_per_subject=1)
    bucket = await js.create_key_value(bucket=run, history=1)
    await js.subscribe(f"{run}.up.*", stream=f"{run}-up", ordered_consumer=True, cb=receive)
    revision = 0

    async def publish(model: bytes) -> None:
        nonlocal revision
        revision = await bucket.update("state", model, last=revision)
        await js.publish(f"{run}.model", model)

    return publish


async def _without(connection: Connection, run: str, receive: Receive) -> Publish:
    await connection.subscribe(f"{run}.up.*", cb=receive)
    await connection.flush()

    async def publish(model: bytes) -> None:
        await connection.publish(f"{run}.model", model)

    return publish


class Client:
    """Uploads what it is given and waits for the next model."""

    def __init__(self, connection: Connection, run: str, name: str, stored: bool):
        self._publish: Any = (connection.jetstream() if stored else connection).publish
        self._subject = f"{run}.up.{name}"
        self._received = asyncio.Event()

    async def receive(self, message: Msg) -> None:
        """Receives a model."""
        self.model = np.frombuffer(message.data, np.float32)
        self._received.set()

    async def step(self, upload: bytes) -> None:
        """Runs one round."""
        self._received.clear()
        await self._publish(self._subject, upload)
        await self._received.wait()


@contextlib.asynccontextmanager
async def joined(url: str, run: str, clients: int, stored: bool) -> AsyncIterator[list[Client]]:
    """All clients, each with its own connection."""
    async with contextlib.AsyncExitStack() as stack:
        found = []
        for k in range(clients):
            connection = await stack.enter_async_context(await nats.connect(url))
            client = Client(connection, run, str(k), stored)
            await connection.subscribe(f"{run}.model", cb=client.receive)
            await connection.flush()
            found.append(client)
        yield found
