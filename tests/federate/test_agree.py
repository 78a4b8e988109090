"""Lockstep: a client says its upload and waits for the model, whatever is lost or given up on the way."""

import asyncio

import numpy as np
import pytest

from mainstem.base import Sample
from mainstem.engines.federate.latest import Latest
from mainstem.errors import BrokenRun
from tests.federate.together import document, joined, serving, until

LINEAR = {"name": "linear", "features": 2, "intercept": False}
FEDOGD = {"name": "fedogd", "step": 0.1}
X, Y = np.array([1.0, 2.0], np.float32), np.float32(1.0)


def test_an_upload_that_was_lost_on_its_way_is_sent_again(broker):
    """In lockstep nobody waits for the broker's word: the hub says whom it misses."""

    async def lived():
        content = document(FEDOGD, LINEAR, pace="lockstep", steps=3)
        async with serving(broker.url, content) as (hub, work):
            async with (
                await joined(broker.url, hub, "0") as one,
                await joined(broker.url, hub, "1") as two,
            ):
                for learner in (one, two):
                    swallow_one(learner.link._connection, hub.names.up("*")[:-1])
                for _ in range(3):
                    await asyncio.gather(*(each.step_with(Sample(X, Y)) for each in (one, two)))
            await asyncio.wait_for(work, 10)
            return hub.table

    table = asyncio.run(lived())
    assert table.merged.tolist() == [3, 3]
    assert not any(table.refused)


def test_a_model_that_was_lost_on_its_way_is_asked_for(broker, monkeypatch):
    lost, real = [], Latest._said

    async def said(self, message):
        if lost:
            await real(self, message)
        else:
            lost.append(message)

    monkeypatch.setattr(Latest, "_said", said)

    async def lived():
        content = document(FEDOGD, LINEAR, clients=1, pace="lockstep", steps=2)
        async with serving(broker.url, content) as (hub, work):
            async with await joined(broker.url, hub, "0") as learner:
                for _ in range(2):
                    await asyncio.wait_for(learner.step_with(Sample(X, Y)), 15)
            await asyncio.wait_for(work, 10)
            return hub.table

    table = asyncio.run(lived())
    assert lost
    assert table.merged.tolist() == [2]
    assert not any(table.refused)


def swallow_one(connection, subject):
    """The first message on a subject that begins so does not leave."""
    real, swallowed = connection.publish, []

    async def publish(where, *rest, **more):
        if where.startswith(subject) and not swallowed:
            swallowed.append(where)
        else:
            await real(where, *rest, **more)

    connection.publish = publish


def test_who_waits_long_for_the_others_says_nothing_twice(broker):
    async def lived():
        content = document(FEDOGD, LINEAR, pace="lockstep", steps=1)
        async with serving(broker.url, content) as (hub, work):
            async with (
                await joined(broker.url, hub, "0") as one,
                await joined(broker.url, hub, "1") as two,
            ):
                waiting = asyncio.create_task(one.step_with(Sample(X, Y)))
                await asyncio.sleep(
                    3.5
                )  # more than the pulses after which an upload is taken for lost
                await two.step_with(Sample(X, Y))
                await waiting
                sent = one.link.sent_bytes, two.link.sent_bytes
            await asyncio.wait_for(work, 10)
            return hub.table, sent

    table, sent = asyncio.run(lived())
    assert not any(table.refused)
    assert sent == (table.most_bytes, table.most_bytes)


def test_a_step_that_was_given_up_is_agreed_on_before_the_next(broker):
    """In lockstep a client that is cancelled while it waits goes on from the model that it waited for."""

    async def lived():
        content = document(FEDOGD, LINEAR, pace="lockstep", steps=2)
        async with serving(broker.url, content) as (hub, work):
            async with (
                await joined(broker.url, hub, "0") as one,
                await joined(broker.url, hub, "1") as two,
            ):
                given_up = asyncio.create_task(one.step_with(Sample(X, Y)))
                await until(lambda: hub.table.waiting)
                given_up.cancel()
                await two.step_with(Sample(X, Y))
                await until(lambda: one.link.latest.step == 1)
                await asyncio.gather(*(each.step_with(Sample(X, Y)) for each in (one, two)))
                models = [np.asarray(each.member.client.received) for each in (one, two)]
            await asyncio.wait_for(work, 10)
            return hub.table, models

    table, models = asyncio.run(lived())
    assert table.merged.tolist() == [2, 2]
    assert not any(table.refused)
    for model in models:
        np.testing.assert_array_equal(model, table.params)


def test_who_leaves_while_it_waits_is_told_so(broker):
    async def lived():
        content = document(FEDOGD, LINEAR, pace="lockstep", steps=2)
        async with serving(broker.url, content) as (hub, _):
            learner = await joined(broker.url, hub, "0")
            waiting = asyncio.create_task(learner.step_with(Sample(X, Y)))
            await asyncio.sleep(0.5)
            await learner.close()
            with pytest.raises(BrokenRun, match="has left"):
                await waiting

    asyncio.run(lived())
