"""Connects to a NATS server. All uses of nats-py's private members are in this file."""

import asyncio
import contextlib
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import nats
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.aio.transport import TcpTransport

from mainstem.engines.federate.security import credentials as credential_files
from mainstem.engines.federate.security.permissions import ELSEWHERE, STREAMS, inbox
from mainstem.errors import MainstemError

FAILED = (
    nats.errors.Error,
    nats.js.errors.Error,
    OSError,
    TimeoutError,
)  # errors of an unreliable network
ATTEMPTS = 2  # further attempts at the first connection


class _AbortingTransport(TcpTransport):
    """A transport that is aborted when its TLS handshake fails: nats-py would wait for it to close for ever."""

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


class _StrictClient(Client):
    """A client that sends nothing without TLS where TLS is required. nats-py would send its credentials.

    It also ends if it is closed while it reconnects. nats-py may reconnect for ever, and the event loop never
    ends.
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
            # The reconnecting task was cancelled while it waited for the same transport to close.

    async def _connect_to_server(self, s: Any) -> None:
        if self._ended:  # `wait_for` of Python 3.11 can lose a cancellation
            raise asyncio.CancelledError
        if self._transport is None and s.uri.scheme in ("nats", "tls"):
            self._transport = _AbortingTransport()
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
    """Opens a connection, which from then on reconnects for ever.

    `credentials` is a file of `mainstem secure`, one with a JWT, or a bare secret key; a user and a password
    may be in the URL. Replies go to the inbox of `name`, or of the user that the file names.
    """
    settings: dict[str, Any] = {
        "servers": url.split(","),
        "max_reconnect_attempts": -1,
        "reconnect_time_wait": 0.2,
        "ping_interval": 20,
        "error_cb": _quiet,
        "pending_size": 0,  # nothing is buffered while disconnected: what must arrive is sent again
    }
    if credentials is not None:
        settings |= credential_files.options(Path(credentials), name)
    if name is not None:
        settings |= {"name": name, "inbox_prefix": inbox(name)}
    return await _connected(url, settings | options)


def on_reconnect(connection: Client, callback: Callable[[], Awaitable[None]]) -> None:
    """Calls `callback` after each reconnection."""
    connection._reconnected_cb = callback


async def _connected(url: str, settings: dict[str, Any]) -> Client:
    """Connects in a few attempts, or raises an error that says why. Later reconnects follow the settings."""
    connection, report = _StrictClient(), settings["error_cb"]
    why: list[Exception] = []

    async def note(error: Exception) -> None:
        why.append(error)
        await report(error)

    first = {"max_reconnect_attempts": ATTEMPTS, "error_cb": note}
    try:
        await connection.connect(**settings | first)
    except (OSError, nats.errors.Error, TimeoutError) as error:
        await connection.close()
        reason = shown(_reason([*why, error]))
        if "authorization" in reason.lower() and "nkeys_seed_str" not in settings:
            reason += ": it wants a credential file"
        raise MainstemError(f"{shown(url)}: no connection to a NATS server: {reason}") from None
    connection.options["max_reconnect_attempts"] = settings["max_reconnect_attempts"]
    return connection


def shown(url: str) -> str:
    """The URL as it may be printed: without a user, a password or a token.

    >>> shown("nats://me:w@rd@one:4222,nats://two:4222")
    'nats://one:4222,nats://two:4222'
    """
    return re.sub(r"//[^,]*@", "//", url)


def _reason(errors: list[Exception]) -> str:
    """The server's own message if there is one, else the first error."""
    own = [error for error in errors if "violation" in str(error).lower()]
    chosen = (own or errors)[0]
    return " ".join(str(chosen).split()) or type(chosen).__name__


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Turns a server that does not answer into an error of one line."""
    try:
        yield
    except (nats.errors.Error, nats.js.errors.Error, TimeoutError) as error:
        raise MainstemError(
            f"the NATS server does not answer: {error or type(error).__name__}"
        ) from None


async def runs(connection: Client) -> list[str]:
    """The names of the runs on this server, at most 1024. An observer asks at a subject of its own."""
    wanted = json.dumps({"subject": "ms.*.status"}).encode()
    for subject in (STREAMS, ELSEWHERE):
        with contextlib.suppress(nats.errors.NoRespondersError, nats.errors.TimeoutError):
            answer = json.loads((await connection.request(subject, wanted, timeout=2)).data)
            if "error" not in answer:
                found = answer["streams"] or []
                return sorted(name.removeprefix("ms-").removesuffix("-down") for name in found)
    raise MainstemError("the NATS server lists its runs to the hub and the observer only")


async def _quiet(error: Exception) -> None:
    """Ignores errors of the connection: they surface at the calls that need it."""
