"""Progress of a run: a bar on a terminal, else lines in the log; and where an interrupt takes effect."""

import contextlib
import html
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

log = logging.getLogger("mainstem")
LOGGED = 30.0  # seconds between two lines in the log
DRAWN = 0.2  # seconds between two drawings of a bar in a notebook

interrupted = threading.Event()  # by Ctrl-C, where `keep_interrupts` was called


def keep_interrupts() -> None:
    """Makes sure that Ctrl-C ends a run: Python drops a KeyboardInterrupt in a destructor or in a callback of the
    garbage collector, so it is raised again at the next progress. No effect where Ctrl-C is ignored."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return

    def interrupt(number: int, frame: Any) -> None:
        interrupted.set()
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, interrupt)


@contextlib.contextmanager
def bar(
    title: Callable[[], str], steps: int, done: int, wanted: bool | None
) -> Iterator[Callable[[int], None]]:
    """Yields a function to call with the step reached; `wanted` None: a bar only if stderr is a terminal."""
    with _bar(title, steps, done, wanted) as shown:

        def reached(step: int) -> None:
            if interrupted.is_set():
                raise KeyboardInterrupt
            shown(step)

        yield reached


@contextlib.contextmanager
def _bar(
    title: Callable[[], str], steps: int, done: int, wanted: bool | None
) -> Iterator[Callable[[int], None]]:
    if wanted is not False and _in_notebook():
        with _notebook(title, steps, done) as shown:
            yield shown
        return
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
        task = progress.add_task(title(), total=steps, completed=done)
        yield lambda step: progress.update(task, completed=step)


def _in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this code: it shows what `display` gets."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


@contextlib.contextmanager
def _notebook(title: Callable[[], str], steps: int, done: int) -> Iterator[Callable[[int], None]]:
    """A bar below the cell, which goes at the end."""
    from IPython.display import HTML, display

    def drawn(step: int) -> Any:
        name = html.escape(title())
        return HTML(f"{name} <progress max='{steps}' value='{step}'></progress> {step}/{steps}")

    handle = display(drawn(done), display_id=True)
    last = time.monotonic()

    def reached(step: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= DRAWN:
            last = now
            handle.update(drawn(step))

    try:
        yield reached
    finally:
        handle.update(HTML(""))


def _logged(title: Callable[[], str], steps: int, done: int) -> Callable[[int], None]:
    """Logs the step reached, with the time left, once in a while."""
    begun = latest = time.monotonic()

    def reached(step: int) -> None:
        nonlocal latest
        now = time.monotonic()
        if now - latest < LOGGED or step == steps:
            return
        latest = now
        left = (now - begun) / (step - done) * (steps - step)
        log.info("%s: step %d of %d, about %.0f s left", title(), step, steps, left)

    return reached
