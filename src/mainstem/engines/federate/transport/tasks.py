"""Background tasks of the event loop whose failure is logged."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger("mainstem")


def start(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    """Starts a task. If it fails, its error is logged at once, not when the task is garbage-collected."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: _report(done, name))
    return task


def _report(task: asyncio.Task[None], name: str) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("%s has failed: %r", name, error, exc_info=error)
