"""Meter: a relay in front of the NATS server that counts the bytes that clients put on their sockets."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit


class Meter:
    """Counts all bytes sent up: payloads, headers, and what the protocol adds."""

    def __init__(self, url: str):
        self._there = urlsplit(url)
        self._relays: list[asyncio.Task[None] | None] = []
        self.up = 0

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relays one client's connection until either side closes it."""
        self._relays.append(asyncio.current_task())
        there = await asyncio.open_connection(self._there.hostname, self._there.port)
        await asyncio.gather(self._pass(reader, there[1], up=True), self._pass(there[0], writer))

    async def ended(self) -> None:
        """Waits until everything sent has been relayed."""
        await asyncio.gather(*filter(None, self._relays))

    async def _pass(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, up: bool = False
    ) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(2**16):
                self.up += len(data) if up else 0
                sink.write(data)
                await sink.drain()
        sink.close()


@contextlib.asynccontextmanager
async def metered(url: str) -> AsyncIterator[tuple[str, Meter]]:
    """A relay address to use instead of `url`, and its meter."""
    meter = Meter(url)
    server = await asyncio.start_server(meter.relay, "127.0.0.1", 0)
    try:
        yield f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}", meter
    finally:
        server.close()
