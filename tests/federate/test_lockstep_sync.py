"""Lockstep: a client sends its upload and waits for the model, even if a message is lost or a step cancelled."""

import asyncio

import numpy as np
import pytest

from mainstem.base import Sample
from mainstem.engines.federate.transport.latest_broadcast import LatestBroadcast
from mainstem.errors import BrokenRun
from tests.federate.in_process import joined, run_content, serving, until

LINEAR = {"name": "linear", "features": 2, "intercept": False}
FEDOGD = {"name": "fedogd", "step": 0.1}
X, Y = np.array([1.0, 2.0], np.float32), np.float32(1.0)


def test_an_upload_that_was_lost_on_its_way_is_sent_again(nats_server):
    """In lockstep nobody waits for the server's acknowledgement: the hub names the clients that are missing."""

    async def lived():
        content = run_content(FEDOGD, LINEAR, pace="lockstep", steps=3)
        async with serving(nats_server.url, content) as (hub, work):
            async with (
                await joined(nats_server.url, hub, "0") as one,
                await joined(nats_server.url, hub, "1") as two,
            ):
                for learner in (one, two):
                    swallow_one(learner.session.uplink._connection, hub.subjects.upload("*")[:-1])
                for _ in range(3):
                    await asyncio.gather(*(each.step_with(Sample(X, Y)) for each in (one, two)))
            await asyncio.wait_for(work, 10)
            return hub.aggregator

    aggregator = asyncio.run(lived())
    assert aggregator.records.merged.tolist() == [3, 3]
    assert not any(aggregator.records.refused)


def test_a_model_that_was_lost_on_its_way_is_asked_for(nats_server, monkeypatch):
    lost, real = [], LatestBroadcast._received

    async def received(self, message):
        if lost:
            await real(self, message)
        else:
            lost.append(message)

    monkeypatch.setattr(LatestBroadcast, "_received", received)

    async def lived():
        content = run_content(FEDOGD, LINEAR, clients=1, pace="lockstep", steps=2)
        async with serving(nats_server.url, content) as (hub, work):
            async with await joined(nats_server.url, hub, "0") as learner:
                for _ in range(2):
                    await asyncio.wait_for(learner.step_with(Sample(X, Y)), 15)
            await asyncio.wait_for(work, 10)
            return hub.aggregator

    aggregator = asyncio.run(lived())
    assert lost
    assert aggregator.records.merged.tolist() == [2]
    assert not any(aggregator.records.refused)


def swallow_one(connection, subject):
    """Drops the first message on a subject that begins so."""
    real, swallowed = connection.publish, []

    async def publish(where, *rest, **more):
        if where.startswith(subject) and not swallowed:
            swallowed.append(where)
        else:
            await real(where, *rest, **more)

    connection.publish = publish


@pytest.mark.slow
def test_who_waits_long_for_the_others_sends_nothing_twice(nats_server):
    async def lived():
        content = run_content(FEDOGD, LINEAR, pace="lockstep", steps=1)
        async with serving(nats_server.url, content) as (hub, work):
            async with (
                await joined(nats_server.url, hub, "0") as one,
                await joined(nats_server.url, hub, "1") as two,
            ):
                waiting = asyncio.create_task(one.step_with(Sample(X, Y)))
                await asyncio.sleep(
                    3.5
                )  # more than the heartbeats after which an upload is taken for lost
                await two.step_with(Sample(X, Y))
                await waiting
                sent = one.sent_bytes, two.sent_bytes
            await asyncio.wait_for(work, 10)
            return hub.aggregator, sent

    aggregator, sent = asyncio.run(lived())
    assert not any(aggregator.records.refused)
    assert sent == (aggregator.most_bytes, aggregator.most_bytes)


def test_a_step_that_was_given_up_is_agreed_on_before_the_next(nats_server):
    """In lockstep a client that is cancelled while it waits goes on from the model that it waited for."""

    async def lived():
        content = run_content(FEDOGD, LINEAR, pace="lockstep", steps=2)
        async with serving(nats_server.url, content) as (hub, work):
            async with (
                await joined(nats_server.url, hub, "0") as one,
                await joined(nats_server.url, hub, "1") as two,
            ):
                given_up = asyncio.create_task(one.step_with(Sample(X, Y)))
                await until(lambda: hub.aggregator.waiting)
                given_up.cancel()
                await two.step_with(Sample(X, Y))
                await until(lambda: one.session.uplink.latest.step == 1)
                await asyncio.gather(*(each.step_with(Sample(X, Y)) for each in (one, two)))
                models = [np.asarray(each.session.state.client.received) for each in (one, two)]
            await asyncio.wait_for(work, 10)
            return hub.aggregator, models

    aggregator, models = asyncio.run(lived())
    assert aggregator.records.merged.tolist() == [2, 2]
    assert not any(aggregator.records.refused)
    for model in models:
        np.testing.assert_array_equal(model, aggregator.model)


def test_who_leaves_while_it_waits_gets_an_error(nats_server):
    async def lived():
        content = run_content(FEDOGD, LINEAR, pace="lockstep", steps=2)
        async with serving(nats_server.url, content) as (hub, _):
            learner = await joined(nats_server.url, hub, "0")
            waiting = asyncio.create_task(learner.step_with(Sample(X, Y)))
            await asyncio.sleep(0.5)
            await learner.close()
            with pytest.raises(BrokenRun, match="has left"):
                await waiting

    asyncio.run(lived())
