"""Connections: closed while they are being made again, they end."""

import asyncio

from mainstem.engines.federate import broker as brokers


def test_a_connection_closed_while_the_server_is_away_leaves_nothing_behind(broker):
    async def closed(connection, after):
        await asyncio.sleep(after)
        await connection.close()

    async def lived():
        connections = [await brokers.connect(broker.url) for _ in range(200)]
        broker.process.stdin.close()  # the server ends
        await asyncio.gather(*(closed(each, 0.2 + 0.005 * n) for n, each in enumerate(connections)))
        await asyncio.sleep(0.5)
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert not asyncio.run(lived())
