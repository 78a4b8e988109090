"""Connections: one that is closed while it reconnects ends."""

import asyncio

import pytest

from mainstem.engines.federate.transport import connection as connections


def test_a_connection_closed_while_the_server_is_away_leaves_nothing_behind(own_server):
    async def closed(connection, after):
        await asyncio.sleep(after)
        await connection.close()

    async def lived():
        opened = [await connections.connect(own_server.url) for _ in range(200)]
        own_server.process.stdin.close()  # the server ends
        await asyncio.gather(*(closed(each, 0.2 + 0.005 * n) for n, each in enumerate(opened)))
        await asyncio.sleep(0.5)
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert not asyncio.run(lived())


def test_closing_is_cancelled_only_by_its_own_caller(nats_server):
    """nats-py cancels its reconnecting task, which may wait for the same line to close as `close` does."""

    async def lived():
        one, two = [await connections.connect(nats_server.url) for _ in range(2)]

        async def cancelled():
            raise asyncio.CancelledError

        one._transport.wait_closed = cancelled
        await one.close()
        two._transport.wait_closed = lambda: asyncio.sleep(10)
        closing = asyncio.create_task(two.close())
        await asyncio.sleep(0.1)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing

    asyncio.run(lived())
