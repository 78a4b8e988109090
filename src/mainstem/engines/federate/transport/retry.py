"""Repeats an idempotent request until the server answers, such as while a cluster elects a new leader."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import nats.errors
import nats.js.errors

from mainstem.errors import MainstemError

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


class GivenUp(MainstemError):
    """A request that was not answered before its sender had to end."""


def _never() -> bool:
    return False


async def retry(
    attempt: Callable[[], Awaitable[Answer]], given_up: Callable[[], bool] = _never
) -> Answer:
    """Repeats `attempt` until it is answered, or until it is `given_up`, which raises `GivenUp`.

    It must be idempotent: an unanswered one may have arrived.
    """
    while True:
        try:
            return await attempt()
        except UNANSWERED:
            if given_up():
                raise GivenUp("the NATS server does not answer") from None
            await asyncio.sleep(INTERVAL)
