"""The report of a run of a million steps: `python -m benchmarks.report`, with Chromium as for the tests of pages.

Prints the time to load the run and to write its report, the size of the file, and the time until Chromium has
drawn it, beside an empty page.
"""

import tempfile
import time
from pathlib import Path

import numpy as np

import mainstem as ms
from tests.report.browser import Browser

STEPS, CLIENTS, SEEDS = 1_000_000, 20, 2


def main() -> None:
    """Prints the table."""
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(1000, 5))
    stream = ms.streams.arrays(rows, (rows[:, 0] > 0).astype(int), CLIENTS)
    run = ms.simulate(ms.fedogd(0.1), ms.problems.logistic(5), stream, steps=STEPS, seeds=SEEDS)
    with tempfile.TemporaryDirectory() as folder:
        run.save(Path(folder) / "run")
        begin = time.perf_counter()
        loaded = ms.load(Path(folder) / "run", stream=stream)
        read = time.perf_counter()
        page = loaded.report(Path(folder) / "report.html")
        written = time.perf_counter()
        print(f"{STEPS:,} steps, {CLIENTS} clients, {SEEDS} seeds")
        print(f"  load the run                 {read - begin:8.2f} s")
        print(f"  write its report             {written - read:8.2f} s   (goal: 10 s)")
        print(f"  size of the report           {page.stat().st_size / 1e6:8.2f} MB  (goal: 5 MB)")
        empty = Path(folder) / "empty.html"
        empty.write_text("<!doctype html><title>empty</title>")
        browser = Browser()
        browser.open(empty)  # the first page starts processes
        for name, each in (("an empty page", empty), ("the report", page)):
            begin = time.perf_counter()
            browser.open(each)
            browser.run("return document.readyState")
            browser.driver.execute_async_script(
                "const done = arguments[0]; requestAnimationFrame(() => setTimeout(done));"
            )
            print(f"  open {name:24}{time.perf_counter() - begin:8.2f} s   (goal: 2 s)")
        browser.close()


if __name__ == "__main__":
    main()
