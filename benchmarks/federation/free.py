"""How many uploads a hub merges in a second when clients go at their own pace."""

import asyncio
import time

from benchmarks.federation import processes
from benchmarks.federation.rounds import document, samples
from mainstem.base import Sample
from mainstem.engines.federate import look
from mainstem.engines.federate.learner import AsyncLearner

CLIENTS, PENDING, SECONDS = 20, 32, 8.0


async def streaming(learner: AsyncLearner, sample: Sample, until: float) -> None:
    """Learn and say it as fast as can be; with too much under way, wait for the next model."""
    while time.perf_counter() < until:
        skipped = learner.skipped
        await learner.step_with(sample)
        if learner.skipped > skipped:
            await learner.link.news()
        await asyncio.sleep(0)


async def merged(url: str, run: str) -> tuple[int, int]:
    """(bytes, merges) so far; a hub answers any order with its status, and this one changes nothing."""
    found = await look.order(url, run, "resume")
    sent = sum(client["bytes_up"] for client in found["clients"].values())
    return sent, found["version"]


async def measured(url: str) -> None:
    """Uploads and merges between two looks at the hub."""
    content = document(CLIENTS, pending=PENDING)
    run = content["federate"]["run"]
    with processes.process(processes.hub, url, content):
        async with processes.joined(url, run, CLIENTS) as learners:
            data = samples(CLIENTS)

            async def stream(seconds: float) -> None:
                until = time.perf_counter() + seconds
                each = zip(learners, data, strict=True)
                await asyncio.gather(*(streaming(*one, until) for one in each))

            await stream(1.0)
            begin, before = time.perf_counter(), await merged(url, run)
            await stream(SECONDS)
            after, spent = await merged(url, run), time.perf_counter() - begin
            size = learners[0].charter.upload_bytes
    uploads, merges = (after[0] - before[0]) / size / spent, (after[1] - before[1]) / spent
    print(f"\nAt their own pace, {CLIENTS} clients, 4 kB models, {PENDING} uploads under way each")
    print(f"  {'mainstem':44}{uploads:9.0f} uploads merged/s in {merges:.0f} merges/s")


def main() -> None:
    """One run."""
    with processes.broker("2m") as url:
        asyncio.run(measured(url))
