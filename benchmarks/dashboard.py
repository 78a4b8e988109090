"""The live page of a run with 500 clients and 20 merges a second: `python -m benchmarks.dashboard`.

Prints the share of a core that the browser's main thread takes, and the time of a round, from its first upload to
its merge, with the page open and without its server, by turns in one run. All clients are tasks of this process.
"""

import asyncio
import contextlib
import json
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.federation import processes
from mainstem.base import Sample
from mainstem.engines.federate import control
from mainstem.engines.federate.client.learner import AsyncLearner
from mainstem.engines.federate.hub.process import run_hub
from mainstem.engines.federate.protocol import timeline
from mainstem.engines.federate.protocol.run_document import parse
from tests.dashboard.pages import page_of
from tests.report.browser import Browser

CLIENTS, MERGES, FEATURES = 500, 20, 20
GATHER = 10  # uploads of a merge: each client uploads every 2.5 seconds
TURNS, SECONDS = 3, 20.0
SETTLE = 8.0  # seconds after a server or a browser was started or ended
RUN = "crowded"
CONTENT = {
    "problem": {"name": "linear", "features": FEATURES, "intercept": False},
    "algorithm": {"name": "fedogd", "step": 0.1},
    "federate": {"run": RUN, "clients": CLIENTS, "gather": GATHER, "staleness": 1000},
}
Turn = tuple[float, float]  # seconds since 1970, from and to


def hub(url: str, folder: str, ready: Event) -> None:
    """Runs the hub until the process is terminated."""
    with contextlib.suppress(KeyboardInterrupt):
        run_hub(parse(CONTENT), Path(folder), url=url, started=lambda _: ready.set())


async def live(learner: AsyncLearner, k: int) -> None:
    """Learns once in a period, at a time of its own."""
    draw = np.random.default_rng(k)
    period = CLIENTS / (GATHER * MERGES)
    due = time.monotonic() + period * k / CLIENTS
    while True:
        shown = draw.standard_normal(FEATURES, np.float32)
        await learner.step_with(Sample(shown, np.float32(shown[0])))
        due += period
        await asyncio.sleep(max(0.0, due - time.monotonic()))


@contextlib.contextmanager
def watched(page: str, folder: Path) -> Iterator[Browser]:
    """Chromium with the page of the run. It takes only time that nobody else needs, as on a machine of its own."""
    driver = folder / "driver"
    driver.write_text('#!/bin/sh\nexec nice -n 19 chromedriver "$@"\n')
    driver.chmod(0o700)
    browser = Browser(str(driver))
    try:
        browser.open(f"{page}#run={RUN}")
        browser.driver.execute_cdp_cmd("Performance.enable", {})
        yield browser
    finally:
        browser.close()


def busy(browser: Browser) -> tuple[float, float]:
    """Seconds in which the main thread of the page has worked, and the time."""
    found = browser.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    known = {each["name"]: each["value"] for each in found}
    return known["TaskDuration"], known["Timestamp"]


def turns(url: str, folder: Path) -> tuple[list[Turn], list[Turn], list[float]]:
    """The times without and with the page, and the share of a core of its main thread in each of these."""
    without, open_, shares = [], [], []
    time.sleep(3 * SETTLE)  # the hub compiles merges
    for _ in range(TURNS):
        without.append(_turn())
        with page_of(url, folder / "token") as page, watched(page, folder) as browser:
            time.sleep(SETTLE)
            before, begin = busy(browser)
            open_.append(_turn())
            after, end = busy(browser)
            shares.append((after - before) / (end - begin))
            count = browser.run("return live.charts.get('merges').drawn.x.values.length")
            assert count > SECONDS, "the page does not follow the run"
        time.sleep(SETTLE)
    return without, open_, shares


def _turn() -> Turn:
    begin = time.time()
    time.sleep(SECONDS)
    return begin, time.time()


def rounds(folder: Path, spans: list[Turn]) -> tuple[np.ndarray, float]:
    """Seconds from the first upload to the merge, of the merges in these times, and merges a second."""
    lines = map(json.loads, (folder / "merges.jsonl").read_text().splitlines())
    found = [
        each["waited"] for each in lines if any(begin <= each["time"] < end for begin, end in spans)
    ]
    return np.array(found), len(found) / sum(end - begin for begin, end in spans)


async def measured(url: str, folder: Path) -> tuple[list[Turn], list[Turn], list[float], int]:
    """The turns of a run whose clients learn all the time, and the bytes of its timeline when that is full."""
    async with processes.joined(url, RUN, CLIENTS) as learners:
        working = [asyncio.create_task(live(each, k)) for k, each in enumerate(learners)]
        try:
            found = await asyncio.to_thread(turns, url, folder)
            (status,) = await control.statuses(url)
            moment = timeline.pack(timeline.moment(status))
            return *found, len(moment) * len(timeline.WIDTHS) * timeline.SLOTS
        finally:
            for task in working:
                task.cancel()
            ended: list[Any] = await asyncio.gather(*working, return_exceptions=True)
            faults = [each for each in ended if not isinstance(each, asyncio.CancelledError)]
            assert not faults, faults


def main() -> None:
    """Prints the table."""
    with tempfile.TemporaryDirectory() as place, processes.nats_server("2m") as url:
        folder = Path(place)
        with processes.process(hub, url, place):
            without, open_, shares, kept = asyncio.run(measured(url, folder))
        print(f"{CLIENTS} clients, {TURNS} turns of {SECONDS:.0f} s each")
        for name, spans in (("without the page", without), ("with the page open", open_)):
            waited, rate = rounds(folder, spans)
            p50, p99 = 1000 * np.quantile(waited, (0.5, 0.99))
            print(
                f"  {name:20}{rate:6.1f} merges/s   a round: median {p50:6.1f} ms, p99 {p99:6.1f} ms"
            )
        listed = ", ".join(f"{100 * share:.1f}" for share in shares)
        print(f"  main thread of the browser: {listed} % of a core  (goal: below 10)")
        print(f"  the timeline when it is full: {kept / 1e6:.0f} MB on the server")


if __name__ == "__main__":
    main()
