"""Progress of a run: a bar on a terminal, else lines in the log."""

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Iterator

log = logging.getLogger("mainstem")
LOGGED = 30.0  # seconds between two lines in the log


@contextlib.contextmanager
def bar(title: str, steps: int, done: int, wanted: bool | None) -> Iterator[Callable[[int], None]]:
    """Yields a function to call with the step reached; `wanted` None: a bar only if stderr is a terminal."""
    if wanted is None:
        wanted = sys.stderr.isatty()
        if not wanted:
            yield _logged(title, steps, done)
            return
    if not wanted:
        yield lambda step: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=steps, completed=done)
        yield lambda step: progress.update(task, completed=step)


def _logged(title: str, steps: int, done: int) -> Callable[[int], None]:
    """Logs the step reached, with the time left, once in a while."""
    begun = latest = time.monotonic()

    def reached(step: int) -> None:
        nonlocal latest
        now = time.monotonic()
        if now - latest < LOGGED or step == steps:
            return
        latest = now
        left = (now - begun) / (step - done) * (steps - step)
        log.info("%s: step %d of %d, about %.0f s left", title, step, steps, left)

    return reached
