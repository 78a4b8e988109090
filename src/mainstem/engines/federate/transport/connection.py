"""Connects to a NATS server. All uses of nats-py's private members are in this file."""

import asyncio
import contextlib
import json
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import nats
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.aio.transport import TcpTransport

from mainstem.engines.federate import event_log
from mainstem.engines.federate.security import credentials as credential_files
from mainstem.engines.federate.security.permissions import ELSEWHERE, STREAMS, inbox
from mainstem.errors import MainstemError

FAILED = (
    nats.errors.Error,
    nats.js.errors.Error,
    OSError,
    TimeoutError,
)  # errors of an unreliable network
SILENT = "the NATS server does not answer"
RECONNECT = 0.2  # seconds between two attempts to connect again
SLOWLY = 5.0  # the same, after the server has refused the credential
ATTEMPTS = 2  # further attempts at the first connection
AGAIN = 1.0  # seconds between two of them, where a server is waited for
REFUSED = (
    "authorization",
    "violation",
    "certificate",
    "tls",
    "permission",
)  # why it is of no use to wait


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
        except AttributeError:  # asyncio's TLS writes to a connection that was lost (Python 3.11)
            pass

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
    wait: float = 0.0,
    given_up: Callable[[], bool] = lambda: False,
    **options: Any,
) -> Client:
    """Opens a connection, which from then on reconnects for ever.

    `credentials` is a file of `mainstem secure`, one with a JWT, or a bare secret key; a user and a password
    may be in the URL. Replies go to the inbox of `name`, or of the user that the file names. A server that is not
    there is waited for, up to `wait` seconds or until it is `given_up`; one that refuses is not.
    """
    settings: dict[str, Any] = {
        "servers": url.split(","),
        "max_reconnect_attempts": -1,
        "reconnect_time_wait": RECONNECT,
        "ping_interval": 20,
        "error_cb": _quiet,
        "pending_size": 0,  # nothing is buffered while disconnected: what must arrive is sent again
    }
    if credentials is not None:
        settings |= credential_files.options(Path(credentials), name)
    if name is not None:
        settings |= {"name": name, "inbox_prefix": inbox(name)}
    end, waits = time.monotonic() + wait, False
    while True:
        try:
            return await _connected(url, settings | options)
        except NotThere as error:
            if time.monotonic() >= end or given_up():
                raise
            if not waits:
                event_log.warning("waits", f"{error}: it is waited for")
            waits = True
            await asyncio.sleep(AGAIN)


class NotThere(MainstemError):
    """No server answers at an address."""


def on_reconnect(connection: Client, callback: Callable[[], Awaitable[None]]) -> None:
    """Calls `callback` after each reconnection."""
    connection._reconnected_cb = callback


def certificate_end(connection: Client) -> float | None:
    """When the certificate ends that the server has shown, in seconds since 1970; None without TLS.

    Asked of a new connection: the TLS of one that was lost may answer with an error.
    """
    writer = getattr(connection._transport, "_io_writer", None)
    found = None if writer is None else writer.get_extra_info("peercert")
    return None if not found else float(ssl.cert_time_to_seconds(found["notAfter"]))


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
        if "certificate_verify_failed" in reason.lower() and "tls" not in settings:
            reason += ": a credential file has the certificate to trust; give --credentials"
        refused = any(word in reason.lower() for word in REFUSED)
        failed = MainstemError if refused else NotThere
        raise failed(f"{shown(url)}: no connection to a NATS server: {reason}") from None
    connection.options["max_reconnect_attempts"] = settings["max_reconnect_attempts"]
    connection._error_cb = _Errors(connection, report)
    return connection


class _Errors:
    """Reports the errors of a connection. A credential that is refused is logged, once.

    The connection then tries again more slowly: the server logs each attempt.
    """

    def __init__(self, connection: Client, report: Callable[[Exception], Awaitable[None]]):
        self._connection = connection
        self._report = report
        self._refused = False

    async def __call__(self, error: Exception) -> None:
        await self._report(error)
        refused = "authorization violation" in str(error).lower()
        self._connection.options["reconnect_time_wait"] = SLOWLY if refused else RECONNECT
        if refused and not self._refused:
            text = "the NATS server refuses this credential: was it revoked or replaced?"
            event_log.error("credential_refused", text)
        self._refused = self._refused or refused


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
    raise MainstemError(
        "the NATS server lists its runs to the hub and the observer only: name one with --run"
    )


async def why_silent(connection: Client) -> str:
    """Why a question was not answered. Servers before 2.11 do not answer if there is no such run."""
    try:
        await connection.flush(1)  # seconds
    except FAILED:
        return SILENT
    return "there is no such run on this NATS server, or not for this credential"


async def _quiet(error: Exception) -> None:
    """Ignores errors of the connection: they surface at the calls that need it."""
