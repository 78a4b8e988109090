"""The hub: deadlines, stale and quarantined clients, orders, a second hub, messages in pieces."""

import asyncio
import json

import numpy as np
import pytest

import mainstem as ms
from mainstem.base import Sample
from mainstem.engines.federate import broker as brokers
from mainstem.engines.federate.charter import draw_up, read
from mainstem.engines.federate.hub import Hub
from mainstem.engines.federate.look import look, order
from mainstem.engines.federate.wire import Reason, Upload, pack_upload
from mainstem.errors import BadSpec, BrokenRun
from tests.federate.processes import ROOT
from tests.federate.together import document, joined, serving, until

LINEAR = {"name": "linear", "features": 2, "intercept": False}
FEDOGD = {"name": "fedogd", "step": 0.1}
X, Y = np.array([1.0, 2.0], np.float32), np.float32(1.0)


def test_a_stalled_client_delays_nobody_past_the_deadline(broker):
    async def lived():
        content = document(FEDOGD, LINEAR, pace="lockstep", deadline=0.2, steps=3)
        async with serving(broker.url, content) as (hub, work):
            async with (
                await joined(broker.url, hub, "0") as one,
                await joined(broker.url, hub, "1"),
            ):
                for _ in range(3):  # the other never speaks
                    await asyncio.wait_for(one.step_with(Sample(X, Y)), 10)
            await asyncio.wait_for(work, 10)
            return hub.table

    table = asyncio.run(lived())
    assert table.merged.tolist() == [3, 0]
    assert table.version == 3


def test_a_late_upload_is_merged_at_the_next_sync(broker):
    async def lived():
        content = document(FEDOGD, LINEAR, pace="lockstep", deadline=0.3, steps=4)
        async with (
            serving(broker.url, content) as (hub, _),
            await joined(broker.url, hub, "0") as one,
            await joined(broker.url, hub, "1") as two,
        ):
            await one.step_with(Sample(X, Y))  # merged without the other
            assert hub.table.merged.tolist() == [1, 0]
            await until(lambda: two.link.latest.step == 1)  # it knows that it is late
            await asyncio.gather(one.step_with(Sample(X, Y)), two.step_with(Sample(X, Y)))
            assert hub.table.merged.tolist() == [2, 1]

    asyncio.run(lived())


def uploads(charter, **changes):
    """A valid upload of client 0 for step 1, and what is changed of it."""
    body = np.ones(charter.message, np.float32).tobytes()
    honest = Upload(charter.digest, charter.codec, 0, 1, 0, 1.0, 1.0, body)
    return pack_upload(honest._replace(**changes))


def test_a_stale_upload_is_refused(broker):
    async def lived():
        content = document(FEDOGD, LINEAR, gather=1, staleness=1)
        async with serving(broker.url, content) as (hub, _):
            raw = await brokers.connect(broker.url)
            for step in (1, 2, 3):
                await raw.publish(
                    hub.names.up("0"), uploads(hub.charter, step=step, version=step - 1)
                )
                await until(lambda step=step: hub.table.version == step)
            await raw.publish(hub.names.up("0"), uploads(hub.charter, step=4, version=1))
            await until(lambda: hub.table.refused[0][Reason.STALE] == 1)
            assert hub.table.strikes[0] == 0  # an honest client that was cut off can be stale
            await raw.close()

    asyncio.run(lived())


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"step": 2**31}, Reason.ROUND),
        ({"step": 2**62}, Reason.ROUND),
        ({"weight": 1e300}, Reason.NOT_FINITE),
        ({"weight": 1e38, "body": np.full(2, 1e3, np.float32).tobytes()}, Reason.NOT_FINITE),
    ],
)
def test_numbers_beyond_all_bounds_are_refused(changes, reason, broker):
    async def lived():
        async with serving(broker.url, document(FEDOGD, LINEAR, gather=1)) as (hub, _):
            raw = await brokers.connect(broker.url)
            await raw.publish(hub.names.up("0"), uploads(hub.charter, **changes))
            await until(lambda: hub.table.refused[0].total() == 1)
            assert hub.table.refused[0] == {reason: 1}
            assert hub.table.version == 0
            await raw.close()

    asyncio.run(lived())


def test_too_many_refusals_are_a_quarantine_and_others_do_not_notice(broker):
    async def lived():
        content = document(FEDOGD, LINEAR, gather=1, strikes=3)
        async with serving(broker.url, content) as (hub, _):
            raw = await brokers.connect(broker.url)
            for _ in range(5):
                await raw.publish(hub.names.up("0"), b"noise")
            await until(lambda: hub.table.refused[0].total() == 5)
            assert hub.table.refused[0] == {Reason.MALFORMED: 3, Reason.QUARANTINED: 2}
            assert hub.status()["clients"]["0"]["state"] == "quarantined"
            await raw.publish(hub.names.up("0"), uploads(hub.charter))  # even an honest one
            await until(lambda: hub.table.refused[0][Reason.QUARANTINED] == 3)
            async with await joined(broker.url, hub, "1") as other:
                await other.learn_one(X, Y)
                await until(lambda: hub.table.merged.tolist() == [0, 1])
            await raw.close()

    asyncio.run(lived())


def test_nobody_waits_for_who_is_quarantined(broker):
    async def lived():
        content = document(FEDOGD, LINEAR, pace="lockstep", steps=3, strikes=3)
        async with serving(broker.url, content) as (hub, work):
            raw = await brokers.connect(broker.url)
            async with await joined(broker.url, hub, "0") as one:
                stepping = asyncio.create_task(one.step_with(Sample(X, Y)))
                await until(lambda: hub.table.waiting)
                for _ in range(3):
                    await raw.publish(hub.names.up("1"), b"noise")
                await asyncio.wait_for(stepping, 10)
                for _ in range(2):
                    await asyncio.wait_for(one.step_with(Sample(X, Y)), 10)
            await asyncio.wait_for(work, 10)
            await raw.close()
            return hub.table.merged.tolist()

    assert asyncio.run(lived()) == [3, 0]


def test_a_run_is_paused_resumed_and_finished(broker):
    async def lived():
        content = document(FEDOGD, LINEAR, gather=1)
        async with serving(broker.url, content) as (hub, work):
            run = hub.charter.rules.run
            assert (await order(broker.url, run, "pause"))["state"] == "paused"
            async with await joined(broker.url, hub, "0") as learner:
                await learner.learn_one(X, Y)
                await until(lambda: hub.table.waiting)
                assert hub.table.version == 0
                await order(broker.url, run, "resume")
                await until(lambda: hub.table.version == 1)
            await order(broker.url, run, "finish")
            await asyncio.wait_for(work, 10)
            (found,) = [each for each in await look(broker.url) if each["run"] == run]
            assert found["state"] == "finished"

    asyncio.run(lived())


def test_a_second_hub_is_refused_at_its_first_write(broker):
    async def lived():
        content = document(FEDOGD, LINEAR, gather=1)
        async with serving(broker.url, content) as (hub, _):
            connection = await brokers.connect(broker.url)
            other = Hub(draw_up(content), connection)
            await other.open()
            async with await joined(broker.url, hub, "0") as learner:
                await learner.learn_one(X, Y)
                await until(lambda: hub.table.version == 1 and other.table.complete())
            with pytest.raises(BrokenRun, match="another hub"):
                await other.serve()
            await connection.close()

    asyncio.run(lived())


def test_another_spec_under_the_same_name_is_refused(broker):
    async def lived():
        content = document(FEDOGD, LINEAR, gather=1)
        async with serving(broker.url, content):
            pass
        content["algorithm"] = {"name": "fedogd", "step": 0.2}
        connection = await brokers.connect(broker.url)
        with pytest.raises(BrokenRun, match="another spec"):
            await Hub(draw_up(content), connection).open()
        await connection.close()

    asyncio.run(lived())


def test_a_model_larger_than_a_message_crosses_and_learns(broker):
    features = 2_500_000  # 10 MB; a message has 8 at most

    async def lived():
        problem = {"name": "linear", "features": features, "intercept": False}
        content = document(
            {"name": "fedogd", "step": 1.0}, problem, clients=1, pace="lockstep", steps=2
        )
        x = np.zeros(features, np.float32)
        x[-1] = 1.0
        async with serving(broker.url, content) as (hub, work):
            async with await joined(broker.url, hub, "0") as learner:
                for _ in range(2):
                    await asyncio.wait_for(learner.step_with(Sample(x, Y)), 60)
                assert learner.predict_one(x) == 1.0
            await asyncio.wait_for(work, 10)
            return hub.table.params

    assert asyncio.run(lived())[-1] == 1.0


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({"pace": "sometimes"}, "pace must be one of"),
        ({"clients": ["a", "a"]}, "name each client once"),
        ({"clients": ["a.b"]}, "letters, digits"),
        ({"run": "two words"}, "letters, digits"),
        ({"deadline": 0}, "above 0"),
        ({"deadlin": 1}, "did you mean deadline"),
        ({"gather": 3}, "at most the 2 clients"),
        ({"features": ["a"]}, "features names 1, the problem has"),
    ],
)
def test_a_charter_that_cannot_be_is_refused(rules, told):
    content = document(FEDOGD, LINEAR)
    content["federate"] |= rules
    with pytest.raises((BadSpec, ms.MainstemError), match=told):
        draw_up(json.loads(json.dumps(content)))


def test_the_example_that_the_documents_name_is_a_charter():
    charter = read(ROOT / "examples" / "load.toml")
    assert (charter.rules.run, len(charter.clients)) == ("load", 8)


def test_who_never_syncs_is_refused():
    with pytest.raises(BadSpec, match="nothing to federate"):
        draw_up(document({"name": "independent", "step": 0.1}, LINEAR))
    seldom = {"name": "fedsea", "step": 0.1, "period": 10}
    with pytest.raises(BadSpec, match="nothing to federate"):
        draw_up(document(seldom, LINEAR, pace="lockstep", steps=9))


def test_exactly_n_needs_lockstep():
    algorithm = {"name": "fedomd", "step": 0.1, "participation": {"name": "exactly", "count": 1}}
    with pytest.raises(BadSpec, match="lockstep"):
        draw_up(document(algorithm, LINEAR))
