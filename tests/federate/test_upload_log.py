"""The upload stream is read again after a server that did not answer."""

import asyncio

import nats.errors
import pytest

from mainstem.engines.federate.protocol.subjects import Subjects
from mainstem.engines.federate.transport.upload_log import UploadLog


class Subscription:
    ended = False

    async def unsubscribe(self):
        if self.ended:
            raise nats.errors.BadSubscriptionError
        self.ended = True


class Server:
    """It does not answer the second request, as without a quorum."""

    def __init__(self):
        self.requests = []

    async def subscribe(self, subject, **given):
        self.requests.append(given["config"].opt_start_seq)
        if len(self.requests) == 2:
            raise nats.errors.TimeoutError
        return Subscription()


def test_a_reader_that_could_not_be_opened_is_opened_later():
    async def lived():
        server = Server()
        log = UploadLog(server, Subjects("main"), None)
        await log.read_from(1)
        with pytest.raises(nats.errors.TimeoutError):
            await log.read_from(5)
        await log.read_from(5)
        await log.read_from(6)
        return server.requests

    assert asyncio.run(lived()) == [1, 5, 5, 6]
