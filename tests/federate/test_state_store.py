"""The hub's state on the NATS server: after a write without an answer, the store finds out whether it was made."""

import asyncio
import uuid

import pytest

from mainstem.engines.federate.transport import connection as connections
from mainstem.engines.federate.transport.state_store import StateStore, StoredState
from mainstem.errors import BrokenRun

SIZES = [10, 3000]  # bytes: in one message, and in pieces


async def opened(url, bucket):
    connection = await connections.connect(url)
    return connection, await StateStore.open(connection.jetstream(), bucket, most=1000)


def state(version, data):
    return StoredState(epoch=1, version=version, data=data)


def unanswered(call, *, arrives):
    """A call whose first attempt gets no answer, whether it `arrives` or not."""
    state = {"first": True}

    async def made(*words, **options):
        first, state["first"] = state["first"], False
        if arrives or not first:
            answer = await call(*words, **options)
        if first:
            raise TimeoutError
        return answer

    return made


@pytest.fixture
def bucket():
    """A unique name."""
    return f"store-{uuid.uuid4().hex}"


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("name", ["update", "put"])
@pytest.mark.parametrize("size", SIZES)
def test_a_write_without_an_answer_is_made_once(size, name, arrives, nats_server, bucket):
    async def lived():
        connection, store = await opened(nats_server.url, bucket)
        await store.write(state(1, bytes(size)))
        setattr(store._bucket, name, unanswered(getattr(store._bucket, name), arrives=arrives))
        await store.write(state(2, b"1" * size))
        await store.write(state(3, b"2" * size))  # and it goes on
        other, again = await opened(nats_server.url, bucket)
        assert await again.read() == state(3, b"2" * size)
        await connection.close()
        await other.close()

    asyncio.run(lived())


@pytest.mark.parametrize("size", SIZES)
def test_what_another_hub_has_written_is_not_taken_for_ones_own(size, nats_server, bucket):
    async def lived():
        connection, store = await opened(nats_server.url, bucket)
        await store.write(state(1, bytes(size)))
        other, rival = await opened(nats_server.url, bucket)
        await rival.read()
        await rival.write(state(2, b"1" * size))
        store._bucket.update = unanswered(store._bucket.update, arrives=False)
        with pytest.raises(BrokenRun, match="another hub"):
            await store.write(state(2, b"1" * size))  # the same bytes, and still not its own
        await connection.close()
        await other.close()

    asyncio.run(lived())
