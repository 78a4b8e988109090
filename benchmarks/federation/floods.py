"""Floods: how much one client that sends as fast as it can slows the rounds of the others.

The flood comes from a separate process, with the name of a client of the run. Sent to a subject that nobody reads,
the same traffic shows what the machine itself takes.
"""

import asyncio
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
from mainstem.engines.federate.protocol.messages import Upload, pack_upload
from mainstem.engines.federate.protocol.run_document import RunDocument, parse

CLIENTS, SECONDS = 4, 4.0
LIAR = "0"  # the client whose name the flood has
UNREAD = "the same traffic, where nobody reads it"
LARGE = 2**20 - 2048  # bytes; a message of the server has at most 1 MiB

Make = Callable[[RunDocument], tuple[str, bytes]]


def _uploads(document: RunDocument) -> tuple[str, bytes]:
    body = np.ones(document.message, document.dtype).tobytes()
    upload = Upload(document.digest, document.codec, 0, 1, 0, 0.0, 1.0, body)
    return document.subjects.upload(LIAR), pack_upload(upload)


def _first_chunks(document: RunDocument) -> tuple[str, bytes]:
    head = struct.pack("<4sIII", b"mspc", 1, 0, 2)
    return document.subjects.upload(LIAR), head + bytes(4000)


def _noise(document: RunDocument) -> tuple[str, bytes]:
    return document.subjects.upload(LIAR), os.urandom(LARGE)


def _heartbeats(document: RunDocument) -> tuple[str, bytes]:
    return document.subjects.heartbeat(LIAR), b'{"epoch": 1, "version": 1, "step": 1}'


def _large_heartbeats(document: RunDocument) -> tuple[str, bytes]:
    return document.subjects.heartbeat(LIAR), bytes(LARGE)


def _unread(document: RunDocument) -> tuple[str, bytes]:
    return "unread.0", _uploads(document)[1]


FLOODS: dict[str, Make] = {
    UNREAD: _unread,
    "uploads": _uploads,
    "first chunks": _first_chunks,
    "1 MB of noise each": _noise,
    "heartbeats": _heartbeats,
    "heartbeats of 1 MB": _large_heartbeats,
}


async def _flooding(url: str, subject: str, data: bytes) -> None:
    connection = await nats.connect(url)
    while True:
        await connection.publish(subject, data)
        if connection.pending_data_size > 2**21:
            await connection.flush()


def flood(url: str, content: dict[str, Any], name: str, ready: Event) -> None:
    """Sends one message again and again until the process is terminated."""
    subject, data = FLOODS[name](parse(content))
    ready.set()
    asyncio.run(_flooding(url, subject, data))


async def _median(step: Callable[[], Any]) -> float:
    """The median duration of a round, in seconds."""
    times, end = [], time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        begin = time.perf_counter()
        await step()
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


async def measured(url: str) -> None:
    """Prints the rounds without a flood, and with each."""
    content = run_content(CLIENTS, pace="lockstep")
    run, data = content["federate"]["run"], samples(CLIENTS)
    with processes.process(processes.hub, url, content):
        async with processes.joined(url, run, CLIENTS) as learners:

            async def step() -> None:
                each = zip(learners, data, strict=True)
                await asyncio.gather(*(learner.step_with(one) for learner, one in each))

            await _median(step)
            quiet = await _median(step)
            print(f"\nA round of {CLIENTS} clients in lockstep while one of them floods the run")
            print(f"  {'no flood':44}{1e3 * quiet:9.2f} ms p50")
            unread = quiet
            for name in FLOODS:
                with processes.process(flood, url, content, name):
                    await asyncio.sleep(1.0)
                    found = await _median(step)
                unread = found if name == UNREAD else unread
                print(f"  {name:44}{1e3 * found:9.2f} ms p50   ratio {found / unread:6.2f}")
                await asyncio.sleep(2.0)


def main() -> None:
    """Measures one run."""
    with processes.nats_server("2m") as url:
        asyncio.run(measured(url))
