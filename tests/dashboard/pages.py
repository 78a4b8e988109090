"""The server of the live page as a process."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path


@contextlib.contextmanager
def page_of(
    what: str, token: Path, *words: str, environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    """The address of the page of a NATS server or a folder, with its token."""
    command = [sys.executable, "-m", "mainstem.cli", "dashboard", what, "--json", "--child"]
    command += ["--listen", "127.0.0.1:0", "--token", str(token), *words]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield json.loads(process.stdout.readline())["page"]
        process.stdin.close()  # as when the hub that started it is killed
        assert process.wait(20) == 0
