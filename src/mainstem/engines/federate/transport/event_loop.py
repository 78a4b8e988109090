"""An event loop in a thread of its own, for programs without one."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any


class BackgroundLoop:
    """Runs coroutines for callers in other threads."""

    def __init__(self, name: str):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.close()

    @property
    def running(self) -> bool:
        """Whether it is not closed."""
        return self._thread.is_alive()

    def post(self, work: Coroutine[Any, Any, Any]) -> "Future[Any]":
        """Starts a coroutine."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Runs a coroutine and returns its result."""
        return self.post(work).result()

    def close(self) -> None:
        """Cancels all tasks and ends the thread."""
        self.wait(self._cancelled())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _cancelled(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
