"""A client that sends without end fills neither the server nor the hub, and the others' uploads are merged."""

import asyncio

import nats.errors
import nats.js.errors
import numpy as np
import pytest

from mainstem.engines.federate.hub.hub import RENEWAL
from mainstem.engines.federate.protocol.chunking import split
from mainstem.engines.federate.protocol.heartbeats import (
    GOODBYE,
    ClientHeartbeat,
    Position,
    pack_client,
)
from mainstem.engines.federate.protocol.messages import Reason, Upload, client_id, pack_upload
from mainstem.engines.federate.protocol.versions import versions
from mainstem.engines.federate.transport import connection as connections
from mainstem.engines.federate.transport.client_heartbeats import FEW
from mainstem.engines.federate.transport.streams import LEAST_ROOM
from tests.federate.in_process import joined, run_content, serving, until

LINEAR = {"name": "linear", "features": 2, "intercept": False}
FEDOGD = {"name": "fedogd", "step": 0.1}
X, Y = [1.0, 2.0], 1.0


def upload(hub, step):
    """A valid upload of client 0."""
    document = hub.document
    body = np.ones(document.message, document.dtype).tobytes()
    ours = document.digest, document.codec, client_id("0"), step, hub.aggregator.version
    return pack_upload(Upload(*ours, 0.0, 1.0, body, hub.aggregator.epoch))


def flooded(url, attack, **rules):
    """Runs `attack(hub, raw)` beside a client that learns; then that one's next upload must be merged."""

    async def lived():
        content = run_content(FEDOGD, LINEAR, gather=1, guard=False, **rules)
        async with serving(url, content) as (hub, _):
            raw = await connections.connect(url)
            await attack(hub, raw)
            async with await joined(url, hub, "1") as learner:
                await learner.learn_one(X, Y)
                await until(lambda: hub.aggregator.records.merged[1] == 1)
            found = await raw.jetstream().stream_info(hub.subjects.upload_stream)
            assert found.state.messages <= LEAST_ROOM + 8
            await raw.close()

    asyncio.run(lived())


def test_uploads(nats_server):
    async def attack(hub, raw):
        hub.paused = True  # nothing is merged: what waits must be bounded all the same
        for step in range(1, 5001):
            await raw.publish(hub.subjects.upload("0"), upload(hub, step))
        await raw.flush()
        await until(lambda: hub.aggregator.records.refused[0][Reason.PENDING])
        await asyncio.sleep(0.2)
        assert len(hub.aggregator.waiting) == hub.document.rules.pending
        assert hub.aggregator.records.refused[0].total() < 4 * LEAST_ROOM
        assert not hub.aggregator.records.strikes.any()
        hub.paused = False

    flooded(nats_server.url, attack)


def test_first_chunks_that_are_never_followed(nats_server):
    async def attack(hub, raw):
        first = split(upload(hub, 1), 40, 7)[0]
        for _ in range(5000):
            await raw.publish(hub.subjects.upload("0"), first)
        await raw.flush()
        await until(lambda: hub._intake.unfinished)
        js = raw.jetstream()
        async with await joined(nats_server.url, hub, "1") as learner:
            for _ in range(3 * LEAST_ROOM):  # more than there is room for, unless they are removed
                await learner.learn_one(X, Y)
        await until(lambda: hub.aggregator.records.merged[1] == 3 * LEAST_ROOM)
        found = await js.stream_info(hub.subjects.upload_stream, subjects_filter=">")
        assert found.state.subjects.get(hub.subjects.upload("1"), 0) < LEAST_ROOM

    async def lived():
        content = run_content(FEDOGD, LINEAR, gather=1, guard=False)
        async with serving(nats_server.url, content) as (hub, _):
            raw = await connections.connect(nats_server.url)
            await attack(hub, raw)
            await raw.close()

    asyncio.run(lived())


def test_large_noise(nats_server):
    async def attack(hub, raw):
        js = raw.jetstream()
        with pytest.raises(nats.js.errors.APIError, match="size exceeds"):
            await js.publish(hub.subjects.upload("0"), bytes(100_000))
        for _ in range(50):
            await raw.publish(hub.subjects.upload("0"), bytes(500_000))
        await raw.flush()
        found = await js.stream_info(hub.subjects.upload_stream)
        assert found.state.bytes < 100_000
        assert hub.aggregator.records.refused[0].total() == 0  # the hub reads none of it

    flooded(nats_server.url, attack)


def test_heartbeats(nats_server, monkeypatch):
    async def attack(hub, raw):
        heard, read = [], hub._clients.on_heartbeat
        monkeypatch.setattr(
            hub._heartbeats, "_received", lambda *given: heard.append(given) or read(*given)
        )
        data = pack_client(ClientHeartbeat(Position(0, 0, 0)), versions({}))
        for _ in range(20_000):
            await raw.publish(hub.subjects.heartbeat("0"), data)
        for _ in range(20):
            await raw.publish(hub.subjects.heartbeat("1"), bytes(500_000))
        await raw.flush()
        await until(lambda: len(heard) >= 2 * FEW)
        assert len(heard) < 10 * FEW
        await asyncio.sleep(2 * RENEWAL)
        await raw.publish(hub.subjects.heartbeat("1"), GOODBYE)  # heard again
        await until(lambda: ("1", GOODBYE) in heard)

    flooded(nats_server.url, attack)
