"""A broadcast that no hub would send harms no client: it is refused and counted, and the next one is taken."""

import asyncio
import contextlib
import logging
import random
import struct
import zlib

import numpy as np
import pytest

from mainstem.engines.federate.protocol import messages
from mainstem.engines.federate.protocol.messages import Broadcast, Reason, Refused, pack_broadcast
from mainstem.engines.federate.protocol.run_document import parse
from mainstem.engines.federate.transport.connection import connect
from tests.federate.in_process import joined, run_content, serving, until

LINEAR = {"name": "linear", "features": 2, "intercept": False}
FEDOGD = {"name": "fedogd", "step": 0.1}
FAR = 10**6  # versions ahead


def bomb(good):
    """A small message with the compressed steps of many clients."""
    lags = zlib.compress(bytes(2**16), 9)
    fields = messages._DOWN, messages.PROTOCOL, good.run, *good.age, good.step, 0, 2**12
    head = messages._BROADCAST.pack(*fields, len(lags), 0)[:-4]
    check = zlib.crc32(good.params, zlib.crc32(lags, zlib.crc32(head)))
    return head + struct.pack("<I", check) + lags + good.params


def numbers(*entries):
    return np.array(entries, np.float64).tobytes()


BAD = {
    "nan": (lambda good: good._replace(params=numbers(0, np.nan)), Reason.NOT_FINITE),
    "infinite": (lambda good: good._replace(params=numbers(-np.inf, 0)), Reason.NOT_FINITE),
    "short": (lambda good: good._replace(params=numbers(0)), Reason.SHAPE),
    "odd": (lambda good: good._replace(params=good.params + b"x"), Reason.SHAPE),
    "long": (lambda good: good._replace(params=bytes(10**6)), Reason.OVERSIZED),
    "other roster": (
        lambda good: good._replace(merged=np.zeros(5), received=np.zeros(5)),
        Reason.SHAPE,
    ),
    "step": (lambda good: good._replace(step=2**40), Reason.ROUND),
    "steps": (lambda good: good._replace(received=good.received + 2**40), Reason.ROUND),
    "version": (lambda good: good._replace(version=2**40), Reason.VERSION),
    "run": (lambda good: good._replace(run=b"12345678"), Reason.RUN),
    "bomb": (bomb, Reason.SHAPE),
    "noise": (lambda good: random.Random(0).randbytes(100), Reason.MALFORMED),
}


@contextlib.asynccontextmanager
async def attacked(url):
    """A hub, a client, and a connection that may publish anything."""
    content = run_content(FEDOGD, LINEAR, clients=2, gather=1, dtype="float64")
    async with serving(url, content) as (hub, _), await joined(url, hub, "0") as learner:
        enemy = await connect(url, None, name="enemy")
        yield hub, learner, enemy
        await enemy.close()


@pytest.mark.parametrize("kind", BAD)
def test_the_client_follows_the_next_good_one(kind, nats_server, caplog):
    forge, reason = BAD[kind]

    async def lived():
        async with attacked(nats_server.url) as (hub, learner, enemy):
            broadcasts = learner.session.uplink._broadcasts
            await learner.learn_one([1.0, 2.0], 1.0)
            await until(lambda: broadcasts.value.version == hub.aggregator.version == 1)
            bad = forge(hub.aggregator.broadcast()._replace(version=FAR))
            data = bad if isinstance(bad, bytes) else pack_broadcast(bad)
            await enemy.publish(hub.subjects.broadcast(0), data)
            await until(lambda: broadcasts.refused)
            assert set(broadcasts.refused) == {reason}  # once more if it was fetched, too
            assert np.isfinite(learner.predict_one([1.0, 2.0]))
            await learner.learn_one([1.0, 3.0], 1.0)
            await until(lambda: broadcasts.value.version == hub.aggregator.version == 2)
            assert np.isfinite(learner.predict_one([1.0, 2.0]))

    with caplog.at_level(logging.WARNING, "mainstem"):
        asyncio.run(lived())
    assert [each.message for each in caplog.records if "broadcast was refused" in each.message]


def test_a_candidate_is_checked_too(nats_server):
    async def lived():
        async with attacked(nats_server.url) as (hub, learner, enemy):
            bad = hub.aggregator.broadcast()._replace(params=numbers(np.nan, 0))
            await enemy.publish(hub.subjects.candidate(0), pack_broadcast(bad))
            await until(lambda: learner.session.uplink._candidates.refused)
            assert learner.session.uplink.candidate is None

    asyncio.run(lived())


def test_changed_broadcasts_are_read_or_refused():
    document = parse(run_content(FEDOGD, LINEAR, clients=2))
    good = pack_broadcast(
        Broadcast(document.digest, 3, 3, np.array([3, 2]), np.array([3, 3]), bytes(8))
    )
    draw, refused = random.Random(0), 0
    for _ in range(2000):
        data = bytearray(good)
        for _ in range(draw.randrange(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        if draw.random() < 0.3:
            data = data[: draw.randrange(len(data))]
        if draw.random() < 0.7 and len(data) > 45:  # with a checksum that fits
            size = messages._BROADCAST.size
            check = zlib.crc32(bytes(data[size:]), zlib.crc32(bytes(data[: size - 4])))
            data[size - 4 : size] = struct.pack("<I", check)
        try:
            document.read_broadcast(bytes(data))
        except Refused:
            refused += 1
    assert refused > 1000


def test_an_older_one_that_comes_late_is_not_taken(nats_server):
    async def lived():
        async with attacked(nats_server.url) as (hub, learner, enemy):
            broadcasts = learner.session.uplink._broadcasts
            older = pack_broadcast(hub.aggregator.broadcast())
            await learner.learn_one([1.0, 2.0], 1.0)
            await until(lambda: broadcasts.value.version == 1)
            await enemy.publish(hub.subjects.broadcast(0), older)
            await enemy.flush()
            await learner.session.uplink._connection.flush()  # the older one has come before it
            await asyncio.sleep(0.05)
            assert broadcasts.value.version == 1

    asyncio.run(lived())
