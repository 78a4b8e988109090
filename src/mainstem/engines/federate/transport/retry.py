"""Repeats an idempotent request until the server answers, such as while a cluster elects a new leader."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import nats.errors
import nats.js.errors

Answer = TypeVar("Answer")

INTERVAL = 0.2  # seconds between two attempts
UNANSWERED = (
    TimeoutError,
    nats.errors.NoRespondersError,
    nats.errors.OutboundBufferLimitError,  # the client is reconnecting
    nats.errors.StaleConnectionError,
    nats.js.errors.NoStreamResponseError,
    nats.js.errors.ServiceUnavailableError,
    nats.js.errors.ServerError,
)


async def retry(attempt: Callable[[], Awaitable[Answer]]) -> Answer:
    """Repeats `attempt` until it is answered. It must be idempotent: an unanswered one may have arrived."""
    while True:
        try:
            return await attempt()
        except UNANSWERED:
            await asyncio.sleep(INTERVAL)
