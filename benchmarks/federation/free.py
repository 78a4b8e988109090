"""Throughput: how many uploads a hub merges per second when clients run at their own pace."""

import asyncio
import time

from benchmarks.federation import processes
from benchmarks.federation.rounds import run_content, samples
from mainstem.base import Sample
from mainstem.engines.federate import control
from mainstem.engines.federate.client.learner import AsyncLearner

CLIENTS, PENDING, SECONDS = 20, 32, 8.0
WARM = 12.0  # seconds in which the hub compiles merges of 20, 40, 80 and more uploads


async def streaming(learner: AsyncLearner, sample: Sample, until: float) -> None:
    """Learns and uploads as fast as possible; with too many uploads in transit, waits for the next model."""
    while time.perf_counter() < until:
        skipped = learner.skipped
        await learner.step_with(sample)
        if learner.skipped > skipped:
            await learner.session.uplink.change()
        await asyncio.sleep(0)


async def merged(url: str, run: str) -> tuple[int, int]:
    """(bytes, merges) so far; a hub answers any command with its status, and this one changes nothing."""
    found = await control.send_order(url, run, "resume")
    sent = sum(client["bytes_up"] for client in found["clients"].values())
    return sent, found["version"]


async def measured(url: str) -> None:
    """Prints the uploads and merges per second between two status requests."""
    content = run_content(CLIENTS, pending=PENDING)
    run = content["federate"]["run"]
    with processes.process(processes.hub, url, content):
        async with processes.joined(url, run, CLIENTS) as learners:
            data = samples(CLIENTS)

            async def stream(seconds: float) -> None:
                until = time.perf_counter() + seconds
                each = zip(learners, data, strict=True)
                await asyncio.gather(*(streaming(*one, until) for one in each))

            await stream(WARM)
            begin, before = time.perf_counter(), await merged(url, run)
            await stream(SECONDS)
            after, spent = await merged(url, run), time.perf_counter() - begin
            size = learners[0].session.document.upload_bytes
    uploads, merges = (after[0] - before[0]) / size / spent, (after[1] - before[1]) / spent
    print(f"\nAt their own pace, {CLIENTS} clients, 4 kB models, {PENDING} uploads under way each")
    print(f"  {'mainstem':44}{uploads:9.0f} uploads merged/s in {merges:.0f} merges/s")


def main() -> None:
    """Measures one run."""
    with processes.nats_server("2m") as url:
        asyncio.run(measured(url))
