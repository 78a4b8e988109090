"""Floods: how much one client that sends as fast as it can slows the rounds of the others.

A round is the time from the samples of three clients until their uploads are merged and broadcast; the hub waits
50 ms for a fourth client. That one floods the run, from a separate process. Sent to a subject that nobody reads,
its traffic shows what the machine itself takes.
"""

import asyncio
import itertools
import os
import struct
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from typing import Any

import nats
import numpy as np

from benchmarks.federation import processes
from benchmarks.federation.rounds import run_content, samples
from mainstem.base import Sample
from mainstem.engines.federate.client.learner import AsyncLearner
from mainstem.engines.federate.client.uplink import Uplink
from mainstem.engines.federate.protocol.heartbeats import ClientHeartbeat, Position, pack_client
from mainstem.engines.federate.protocol.messages import Broadcast, Upload, client_id, pack_upload
from mainstem.engines.federate.protocol.run_document import RunDocument

CLIENTS, SECONDS = 4, 4.0
DEADLINE = 0.05  # seconds that a merge waits for the fourth client
BEGIN, PAUSE = 3.0, 2.0  # seconds until a flood has begun, and after it
LIAR = "0"  # the client whose name the flood has
LARGE = 2**20 - 2048  # bytes; a message of the server has at most 1 MiB

Make = Callable[[RunDocument, Broadcast], tuple[str, Callable[[int], bytes]]]


def _uploads(document: RunDocument, newest: Broadcast) -> tuple[str, Callable[[int], bytes]]:
    """Valid uploads, each of the next step."""
    body = np.full(document.message, 1e-3, document.dtype).tobytes()
    ours = document.digest, document.codec, client_id(LIAR)

    def made(n: int) -> bytes:
        return pack_upload(Upload(*ours, n + 1, 0, 0.0, 1.0, body, newest.epoch))

    return document.subjects.upload(LIAR), made


def _first_chunks(document: RunDocument, _: Broadcast) -> tuple[str, Callable[[int], bytes]]:
    data = struct.pack("<4sIII", b"mspc", 1, 0, 2) + bytes(4000)
    return document.subjects.upload(LIAR), lambda n: data


def _noise(document: RunDocument, _: Broadcast) -> tuple[str, Callable[[int], bytes]]:
    data = os.urandom(LARGE)
    return document.subjects.upload(LIAR), lambda n: data


def _heartbeats(document: RunDocument, newest: Broadcast) -> tuple[str, Callable[[int], bytes]]:
    data = pack_client(ClientHeartbeat(Position(*newest.age, 1)), document.versions)
    return document.subjects.heartbeat(LIAR), lambda n: data


def _large_heartbeats(document: RunDocument, _: Broadcast) -> tuple[str, Callable[[int], bytes]]:
    return document.subjects.heartbeat(LIAR), lambda n: bytes(LARGE)


FLOODS: dict[str, Make] = {
    "uploads": _uploads,
    "first chunks": _first_chunks,
    "1 MB of noise each": _noise,
    "heartbeats": _heartbeats,
    "heartbeats of 1 MB": _large_heartbeats,
}


async def _flooding(url: str, content: dict[str, Any], name: str, unread: bool) -> None:
    uplink = await Uplink.open(url, content["federate"]["run"], LIAR, None)
    assert uplink.latest is not None
    subject, made = FLOODS[name](uplink.document, uplink.latest)
    await uplink.close()
    connection = await nats.connect(url)
    for n in itertools.count():
        await connection.publish("unread" if unread else subject, made(n))
        if connection.pending_data_size > 2**21:
            await connection.flush()


def flood(url: str, content: dict[str, Any], name: str, unread: bool, ready: Event) -> None:
    """Sends messages without end until the process is terminated."""
    ready.set()
    asyncio.run(_flooding(url, content, name, unread))


async def _median(step: Callable[[], Any]) -> float:
    """The median duration of a round, in seconds."""
    times, end = [], time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        begin = time.perf_counter()
        await step()
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


async def _merged(learner: AsyncLearner, sample: Sample) -> None:
    """Learns from a sample, and waits until the upload is merged."""
    await learner.step_with(sample)
    session = learner.session
    while session.uplink.latest.received[session.state.k] < session.step:
        await session.uplink.change()


async def _measured(url: str, name: str) -> None:
    """Prints the rounds without a flood, with a flood that nobody reads, and with the same flood of the run."""
    content = run_content(CLIENTS, gather=CLIENTS, deadline=DEADLINE, staleness=10**6)
    run, data = content["federate"]["run"], samples(CLIENTS)
    with processes.process(processes.hub, url, content):
        async with processes.joined(url, run, CLIENTS) as (liar, *others):
            await liar.close()

            async def step() -> None:
                each = zip(others, data[1:], strict=True)
                await asyncio.gather(*(_merged(learner, one) for learner, one in each))

            await _median(step)
            quiet = await _median(step)
            times = []
            for unread in (True, False):
                with processes.process(flood, url, content, name, unread):
                    await asyncio.sleep(BEGIN)
                    times.append(await _median(step))
                await asyncio.sleep(PAUSE)
            figures = "".join(f"{1e3 * each:11.2f}" for each in (quiet, *times))
            print(f"  {name:24}{figures}{times[1] / times[0]:11.2f}")


def main() -> None:
    """Measures a run for each kind of flood."""
    print("A round of three clients while a fourth floods the run, deadline 50 ms: p50 in ms")
    print(f"  {'':24}{'no flood':>11}{'unread':>11}{'flood':>11}{'ratio':>11}")
    for name in FLOODS:
        with processes.nats_server("2m") as url:
            asyncio.run(_measured(url, name))
