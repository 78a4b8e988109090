"""Progress bar on a terminal; nothing is printed into a pipe."""

import contextlib
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def bar(title: str, steps: int, done: int, wanted: bool | None) -> Iterator[Callable[[int], None]]:
    """Yields a function to call with the step reached; `wanted` None: show the bar only if stderr is a
    terminal."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
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
