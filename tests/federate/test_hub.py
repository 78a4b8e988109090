"""The hub: deadlines, stale and quarantined clients, commands, a second hub, messages in pieces."""

import asyncio
import json

import numpy as np
import pytest

import mainstem as ms
from mainstem.base import Sample
from mainstem.engines.federate.control import send_order, statuses
from mainstem.engines.federate.hub.hub import Hub
from mainstem.engines.federate.protocol.messages import Reason, Upload, client_id, pack_upload
from mainstem.engines.federate.protocol.run_document import parse, read
from mainstem.engines.federate.transport import connection as connections
from mainstem.errors import BadSpec, BrokenRun
from tests.federate.in_process import joined, run_content, serving, until
from tests.federate.processes import ROOT

LINEAR = {"name": "linear", "features": 2, "intercept": False}
FEDOGD = {"name": "fedogd", "step": 0.1}
X, Y = np.array([1.0, 2.0], np.float32), np.float32(1.0)


def test_a_stalled_client_delays_nobody_past_the_deadline(nats_server):
    async def lived():
        content = run_content(FEDOGD, LINEAR, pace="lockstep", deadline=0.2, steps=3)
        async with serving(nats_server.url, content) as (hub, work):
            async with (
                await joined(nats_server.url, hub, "0") as one,
                await joined(nats_server.url, hub, "1"),
            ):
                for _ in range(3):  # the other never uploads
                    await asyncio.wait_for(one.step_with(Sample(X, Y)), 10)
            await asyncio.wait_for(work, 10)
            return hub.aggregator

    aggregator = asyncio.run(lived())
    assert aggregator.records.merged.tolist() == [3, 0]
    assert aggregator.version == 3


def test_a_late_upload_is_merged_at_the_next_sync(nats_server):
    async def lived():
        content = run_content(FEDOGD, LINEAR, pace="lockstep", deadline=0.3, steps=4)
        async with (
            serving(nats_server.url, content) as (hub, _),
            await joined(nats_server.url, hub, "0") as one,
            await joined(nats_server.url, hub, "1") as two,
        ):
            await one.step_with(Sample(X, Y))  # merged without the other
            assert hub.aggregator.records.merged.tolist() == [1, 0]
            await until(lambda: two.session.uplink.latest.step == 1)  # it knows that it is late
            await asyncio.gather(one.step_with(Sample(X, Y)), two.step_with(Sample(X, Y)))
            assert hub.aggregator.records.merged.tolist() == [2, 1]

    asyncio.run(lived())


def uploads(hub, **changes):
    """A valid upload of client 0 for step 1, with these changes."""
    document = hub.document
    body = np.ones(document.message, np.float32).tobytes()
    honest = Upload(
        document.digest,
        document.codec,
        client_id(document.clients[0]),
        1,
        0,
        1.0,
        1.0,
        body,
        hub.aggregator.epoch,
    )
    return pack_upload(honest._replace(**changes))


def test_a_stale_upload_is_refused(nats_server):
    async def lived():
        content = run_content(FEDOGD, LINEAR, gather=1, staleness=1)
        async with serving(nats_server.url, content) as (hub, _):
            raw = await connections.connect(nats_server.url)
            for step in (1, 2, 3):
                await raw.publish(
                    hub.subjects.upload("0"), uploads(hub, step=step, version=step - 1)
                )
                await until(lambda step=step: hub.aggregator.version == step)
            await raw.publish(hub.subjects.upload("0"), uploads(hub, step=4, version=1))
            await until(lambda: hub.aggregator.records.refused[0][Reason.STALE] == 1)
            assert (
                hub.aggregator.records.strikes[0] == 0
            )  # an honest client that was cut off can be stale
            await raw.close()

    asyncio.run(lived())


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"step": 2**31}, Reason.ROUND),
        ({"step": 2**62}, Reason.ROUND),
        ({"weight": 1e300}, Reason.WEIGHT),
        ({"weight": 1e38, "body": np.full(2, 1e3, np.float32).tobytes()}, Reason.WEIGHT),
        ({"loss": 1e300}, Reason.NOT_FINITE),
    ],
)
def test_numbers_beyond_all_bounds_are_refused(changes, reason, nats_server):
    async def lived():
        async with serving(nats_server.url, run_content(FEDOGD, LINEAR, gather=1)) as (hub, _):
            raw = await connections.connect(nats_server.url)
            await raw.publish(hub.subjects.upload("0"), uploads(hub, **changes))
            await until(lambda: hub.aggregator.records.refused[0].total() == 1)
            assert hub.aggregator.records.refused[0] == {reason: 1}
            assert hub.aggregator.version == 0
            await raw.close()

    asyncio.run(lived())


def test_too_many_refusals_are_a_quarantine_and_others_do_not_notice(nats_server):
    async def lived():
        content = run_content(FEDOGD, LINEAR, gather=1, strikes=3)
        async with serving(nats_server.url, content) as (hub, _):
            raw = await connections.connect(nats_server.url)
            for _ in range(5):
                await raw.publish(hub.subjects.upload("0"), b"noise")
            await until(lambda: hub.aggregator.records.refused[0].total() == 5)
            assert hub.aggregator.records.refused[0] == {Reason.MALFORMED: 3, Reason.QUARANTINED: 2}
            assert hub.status()["clients"]["0"]["state"] == "quarantined"
            await raw.publish(hub.subjects.upload("0"), uploads(hub))  # even an honest one
            await until(lambda: hub.aggregator.records.refused[0][Reason.QUARANTINED] == 3)
            async with await joined(nats_server.url, hub, "1") as other:
                await other.learn_one(X, Y)
                await until(lambda: hub.aggregator.records.merged.tolist() == [0, 1])
            await raw.close()

    asyncio.run(lived())


def test_nobody_waits_for_who_is_quarantined(nats_server):
    async def lived():
        content = run_content(FEDOGD, LINEAR, pace="lockstep", steps=3, strikes=3)
        async with serving(nats_server.url, content) as (hub, work):
            raw = await connections.connect(nats_server.url)
            async with await joined(nats_server.url, hub, "0") as one:
                stepping = asyncio.create_task(one.step_with(Sample(X, Y)))
                await until(lambda: hub.aggregator.waiting)
                for _ in range(3):
                    await raw.publish(hub.subjects.upload("1"), b"noise")
                await asyncio.wait_for(stepping, 10)
                for _ in range(2):
                    await asyncio.wait_for(one.step_with(Sample(X, Y)), 10)
            await asyncio.wait_for(work, 10)
            await raw.close()
            return hub.aggregator.records.merged.tolist()

    assert asyncio.run(lived()) == [3, 0]


def test_a_run_is_paused_resumed_and_finished(nats_server):
    async def lived():
        content = run_content(FEDOGD, LINEAR, gather=1)
        async with serving(nats_server.url, content) as (hub, work):
            run = hub.document.rules.run
            assert (await send_order(nats_server.url, run, "pause"))["state"] == "paused"
            async with await joined(nats_server.url, hub, "0") as learner:
                await learner.learn_one(X, Y)
                await until(lambda: hub.aggregator.waiting)
                assert hub.aggregator.version == 0
                await send_order(nats_server.url, run, "resume")
                await until(lambda: hub.aggregator.version == 1)
            await send_order(nats_server.url, run, "finish")
            await asyncio.wait_for(work, 10)
            (found,) = [each for each in await statuses(nats_server.url) if each["run"] == run]
            assert found["state"] == "finished"

    asyncio.run(lived())


def test_the_newest_hub_takes_a_run_over(nats_server):
    """The older one ends, also if nothing is uploaded; a suspended one when it wakes up."""

    async def lived():
        content = run_content(FEDOGD, LINEAR, gather=1)
        connection = await connections.connect(nats_server.url)
        older = Hub(parse(content), connection)
        await older.open()
        work = asyncio.create_task(older.serve())
        async with serving(nats_server.url, content) as (newer, _):
            with pytest.raises(BrokenRun, match="another hub has taken this run over"):
                await asyncio.wait_for(work, 20)
            async with await joined(nats_server.url, newer, "0") as learner:
                await learner.learn_one(X, Y)
                await until(lambda: newer.aggregator.version == 1)
            assert older.aggregator.version == 0
        await connection.close()

    asyncio.run(lived())


def test_another_run_under_the_same_name_is_refused(nats_server):
    async def lived():
        content = run_content(FEDOGD, LINEAR, gather=1)
        async with serving(nats_server.url, content):
            pass
        content["algorithm"] = {"name": "fedomd", "step": 0.1}
        connection = await connections.connect(nats_server.url)
        with pytest.raises(BadSpec, match=r"algorithm\.name cannot change while the run lives"):
            await Hub(parse(content), connection).open()
        await connection.close()

    asyncio.run(lived())


@pytest.mark.slow
def test_a_model_larger_than_a_message_crosses_and_learns(nats_server):
    features = 2_500_000  # 10 MB; a message has 8 at most

    async def lived():
        problem = {"name": "linear", "features": features, "intercept": False}
        content = run_content(
            {"name": "fedogd", "step": 1.0}, problem, clients=1, pace="lockstep", steps=2
        )
        x = np.zeros(features, np.float32)
        x[-1] = 1.0
        async with serving(nats_server.url, content) as (hub, work):
            async with await joined(nats_server.url, hub, "0") as learner:
                for _ in range(2):
                    await asyncio.wait_for(learner.step_with(Sample(x, Y)), 60)
                assert learner.predict_one(x) == 1.0
            await asyncio.wait_for(work, 10)
            return hub.aggregator.model

    assert asyncio.run(lived())[-1] == 1.0


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({"pace": "sometimes"}, "pace must be one of"),
        ({"clients": ["a", "a"]}, "name each client once"),
        ({"clients": ["a.b"]}, "letters, digits"),
        ({"run": "two words"}, "letters, digits"),
        ({"deadline": 0}, "above 0"),
        ({"deadlin": 1}, "did you mean deadline"),
        ({"gather": 3}, "at most 2"),
        ({"quorum": 3}, "at most 2"),
        ({"gather": 1, "quorum": 2}, "at most gather, 1"),
        ({"guard": 1}, "true or false"),
        ({"features": ["a"]}, "features names 1, the problem has"),
    ],
)
def test_rules_that_are_not_valid_are_refused(rules, expected):
    content = run_content(FEDOGD, LINEAR)
    content["federate"] |= rules
    with pytest.raises((BadSpec, ms.MainstemError), match=expected):
        parse(json.loads(json.dumps(content)))


def test_the_example_that_the_documents_name_is_a_run_document():
    document = read(ROOT / "examples" / "load.toml")
    assert (document.rules.run, len(document.clients)) == ("load", 8)


def test_who_never_syncs_is_refused():
    with pytest.raises(BadSpec, match="nothing to federate"):
        parse(run_content({"name": "independent", "step": 0.1}, LINEAR))
    seldom = {"name": "fedsea", "step": 0.1, "period": 10}
    with pytest.raises(BadSpec, match="nothing to federate"):
        parse(run_content(seldom, LINEAR, pace="lockstep", steps=9))


def test_exactly_n_needs_lockstep():
    algorithm = {"name": "fedomd", "step": 0.1, "participation": {"name": "exactly", "count": 1}}
    with pytest.raises(BadSpec, match="lockstep"):
        parse(run_content(algorithm, LINEAR))
