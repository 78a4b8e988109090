"""Fetches the document of a run from the NATS server."""

import asyncio
import functools
import json
import time

from nats.aio.client import Client

from mainstem.engines.federate.protocol.run_document import RunDocument, decode
from mainstem.engines.federate.protocol.subjects import Subjects
from mainstem.engines.federate.transport.connection import FAILED, why_silent
from mainstem.errors import MainstemError

RETRY = 0.5  # seconds between two questions for a run that is not there yet


class NoRun(MainstemError):
    """There is no such run, or none yet, or the server does not answer just now."""


async def fetch_awaited(connection: Client, subjects: Subjects, end: float) -> RunDocument:
    """The run document; until `end`, of the monotonic clock, it is waited for."""
    while True:
        try:
            return await fetch_document(connection, subjects)
        except NoRun:
            if time.monotonic() >= end:
                raise
            await asyncio.sleep(RETRY)


async def fetch_document(connection: Client, subjects: Subjects) -> RunDocument:
    """The newest revision of the run document."""
    js = connection.jetstream(timeout=5)
    try:
        found = await js.get_msg(subjects.broadcast_stream, subject=subjects.document, direct=True)
        return _decoded(found.data or b"", subjects.run)
    except TimeoutError:
        why = await why_silent(connection)
        raise NoRun(f"{subjects.run}: {why}: try again") from None
    except (*FAILED, json.JSONDecodeError):
        raise NoRun(f"{subjects.run}: there is no such run on this NATS server") from None


_decoded = functools.lru_cache(maxsize=16)(decode)  # once for all clients in this process


def not_listed(document: RunDocument, client: str) -> str:
    """Why a client is not in the roster."""
    now = [name for name, old in document.formerly.items() if old == client]
    if now:
        return (
            f"client {client!r} is called {now[0]!r} now: join again as that, with the same folder"
        )
    listed = ", ".join(document.clients[:8])
    more = " ..." if len(document.clients) > 8 else ""
    return f"has no client {client!r}: one of {listed}{more}"
