"""The live page of a hub: `mainstem dashboard` in a process of its own, which takes no time from merges."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from mainstem.engines.federate import event_log

TOKEN = (
    "dashboard.token"  # in the hub's folder: the same after a restart, for pages that are left open
)
WATCH = 1.0  # seconds between two looks at the process
PAUSE = 10.0  # seconds after which one that has ended is started again


class LivePage:
    """The page of one run, at HOST:PORT. Its process ends when the hub's does, however that ends.

    `ready` is called with the address of the page, which has its token.
    """

    def __init__(
        self,
        listen: str,
        folder: Path,
        run: str,
        url: str,
        credentials: str | Path | None,
        ready: Callable[[str], None],
    ):
        words = ["dashboard", "-", "--child", "--json", "--run", run, "--listen", listen]
        words += ["--token", str(folder / TOKEN)]
        words += [] if credentials is None else ["--credentials", str(credentials)]
        self._command = [sys.executable, "-m", "mainstem.cli", *words]
        self._url = url
        self._run = run
        self._ready = ready
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C goes to the hub alone, which stops it
        )
        assert self._process.stdin is not None
        self._process.stdin.write(
            f"{self._url}\n".encode()
        )  # not an argument: it may have a password
        self._process.stdin.flush()

    async def keep_running(self) -> None:
        """Reports the address, and starts the process again if it has ended. The first time is logged."""
        logged = False
        await self._report()
        while True:
            await asyncio.sleep(WATCH)
            code = self._process.poll()
            if code is None:
                continue
            if not logged:
                text = f"the live page has ended with code {code}: it is started again every {PAUSE:.0f} s"
                event_log.error("page_ended", text, run=self._run, code=code)
                logged = True
            await asyncio.sleep(PAUSE)
            self._start()
            await self._report()

    async def _report(self) -> None:
        """Waits for the address; a process that ends has none."""
        assert self._process.stdout is not None
        line = await asyncio.to_thread(self._process.stdout.readline)
        if line:
            self._ready(json.loads(line)["page"])

    def stop(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
