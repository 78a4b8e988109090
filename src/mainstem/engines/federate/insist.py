"""Asking the broker until it answers: while a cluster that has lost a server chooses a leader, none does."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import nats.errors
import nats.js.errors

Answer = TypeVar("Answer")

AGAIN = 0.2  # seconds between two attempts
UNANSWERED = (
    TimeoutError,
    nats.errors.NoRespondersError,
    nats.errors.OutboundBufferLimitError,  # the connection is being made again
    nats.errors.StaleConnectionError,
    nats.js.errors.NoStreamResponseError,
    nats.js.errors.ServiceUnavailableError,
    nats.js.errors.ServerError,
)


async def insist(attempt: Callable[[], Awaitable[Answer]]) -> Answer:
    """The answer to `attempt`, which may be made twice: one without an answer may have arrived."""
    while True:
        try:
            return await attempt()
        except UNANSWERED:
            await asyncio.sleep(AGAIN)
