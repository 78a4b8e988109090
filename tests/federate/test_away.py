"""A client or its hub is away, and comes back."""

import asyncio
import shutil

import numpy as np
import pytest

from mainstem.engines.federate.client import uplink as links
from mainstem.engines.federate.protocol.heartbeats import GOODBYE
from mainstem.errors import BrokenRun
from tests.federate.in_process import joined, run_content, serving, until
from tests.federate.test_learner import FEDOGD, LOGISTIC, rows


def test_a_client_comes_back_where_it_was(nats_server, tmp_path):
    async def lived():
        async with serving(nats_server.url, run_content(FEDOGD, LOGISTIC, gather=1)) as (hub, _):
            each = list(rows(60))
            async with await joined(nats_server.url, hub, "0", folder=tmp_path / "a") as learner:
                for x, y in each[:30]:
                    await learner.learn_one(x, y)
                before = learner.loss
            async with await joined(nats_server.url, hub, "0", folder=tmp_path / "a") as learner:
                assert (learner.step, learner.loss) == (30, before)
                with pytest.raises(BrokenRun, match="another process"):
                    await joined(nats_server.url, hub, "0", folder=tmp_path / "a")
                for x, y in each[30:]:
                    await learner.learn_one(x, y)
            await until(lambda: hub.aggregator.records.merged[0] == 60)
            with pytest.raises(BrokenRun, match="another run or client"):
                await joined(nats_server.url, hub, "1", folder=tmp_path / "a")

    asyncio.run(lived())


def test_what_a_kill_costs_is_logged(nats_server, tmp_path, caplog):
    async def lived():
        algorithm = {"name": "fedsea", "step": 0.1, "period": 10}
        async with serving(nats_server.url, run_content(algorithm, LOGISTIC, gather=1)) as (hub, _):
            killed = await joined(nats_server.url, hub, "0", folder=tmp_path)
            for x, y in rows(17):
                await killed.learn_one(x, y)
            await killed.session.uplink.close()
            killed.session._persistence.close()  # as the end of a process does
            async with await joined(nats_server.url, hub, "0", folder=tmp_path) as learner:
                assert (learner.step, learner.lost) == (10, 7)
            async with await joined(nats_server.url, hub, "0", folder=tmp_path) as learner:
                assert (learner.step, learner.lost) == (10, 7)  # until they are given again

    asyncio.run(lived())
    assert "7 samples after sample 10 were learnt but not stored" in caplog.text


def test_a_client_logs_that_the_hub_is_away_and_goes_on(nats_server, monkeypatch, caplog):
    monkeypatch.setattr(links, "AWAY", 1.5)

    async def lived():
        content = run_content(FEDOGD, LOGISTIC, clients=1, gather=1)
        async with serving(nats_server.url, content) as (hub, _):
            learner = await joined(nats_server.url, hub, "0")
            assert not learner.hub_is_away
        for x, y in rows(5):
            learner.predict_one(x)
            await learner.learn_one(x, y)
        await until(lambda: "is away" in caplog.text)
        assert learner.step == 5
        async with serving(nats_server.url, content) as (hub, _):
            await until(lambda: "is back" in caplog.text)
            await until(lambda: hub.aggregator.records.merged[0] == 5)
            await learner.close()

    asyncio.run(lived())
    assert "client 0: the hub is away: this client continues alone" in caplog.text


def test_what_was_sent_while_the_hub_was_away_is_all_merged(nats_server):
    async def lived():
        content = run_content(FEDOGD, LOGISTIC, clients=1, gather=1, pending=200)
        async with serving(nats_server.url, content) as (hub, _):
            learner = await joined(nats_server.url, hub, "0")
        for x, y in rows(200):
            await learner.learn_one(x, y)
        await asyncio.wait(learner.session.pending.sending, timeout=20)
        async with serving(nats_server.url, content) as (hub, _):
            await until(lambda: hub.aggregator.records.merged[0] == 200)
            await learner.close()
            return hub.aggregator.records.bytes_up[0] / hub.document.upload_bytes

    assert asyncio.run(lived()) == 200


def test_who_was_away_too_long_is_merged_again(nats_server):
    async def lived():
        content = run_content(FEDOGD, LOGISTIC, gather=1, pending=2, staleness=3)
        async with (
            serving(nats_server.url, content) as (hub, _),
            await joined(nats_server.url, hub, "0") as one,
            await joined(nats_server.url, hub, "1") as two,
        ):
            each = list(rows(20))
            for n in range(5):
                await one.learn_one(*each[n])
                await until(lambda: hub.aggregator.records.merged[0] == one.step)
            two.session.uplink._broadcasts.value = None  # it still holds the first model
            await two.learn_one(*each[5])
            await two.learn_one(*each[6])
            await until(lambda: hub.aggregator.records.refused[1]["stale"] == 2)
            await one.learn_one(*each[7])
            await until(lambda: two.session.uplink.latest is not None)
            await two.learn_one(*each[8])
            await until(lambda: hub.aggregator.records.merged[1] == 3)

    asyncio.run(lived())


def test_a_client_that_comes_back_without_its_folder_counts_on(nats_server, caplog):
    async def lived():
        async with serving(nats_server.url, run_content(FEDOGD, LOGISTIC, gather=1)) as (hub, _):
            for last in (20, 40):
                async with await joined(nats_server.url, hub, "0", patient=True) as learner:
                    for x, y in rows(20):
                        await learner.learn_one(x, y)
                    assert learner.step == last
                await until(lambda: hub.aggregator.records.merged[0] == last)  # noqa: B023
                await until(
                    lambda: hub.status()["clients"]["0"]["state"] == "away"
                )  # it announced that it leaves
                losses.append(learner.loss)
            assert np.isclose(hub.aggregator.records.losses[0], sum(losses))
            assert not hub.aggregator.records.refused[0]

    losses = []
    asyncio.run(lived())
    assert "known up to sample 20: it continues from there" in caplog.text


def test_losses_of_an_older_folder_are_not_counted_twice(nats_server, tmp_path):
    async def learnt(hub, folder, count):
        client = await joined(nats_server.url, hub, "0", patient=True, folder=folder)
        async with client as learner:
            for x, y in rows(count):
                await learner.learn_one(x, y)
        await until(lambda: hub.aggregator.records.merged[0] == learner.step)
        return learner.loss

    async def lived():
        async with serving(nats_server.url, run_content(FEDOGD, LOGISTIC, gather=1)) as (hub, _):
            await learnt(hub, tmp_path / "client", 20)
            shutil.copytree(tmp_path / "client", tmp_path / "older")
            first = await learnt(hub, tmp_path / "client", 10)
            second = await learnt(hub, tmp_path / "older", 10)
            assert np.isclose(hub.aggregator.records.losses[0], first + second)
            assert second < 0.6 * first  # of 10 samples, and of 30

    asyncio.run(lived())


def test_an_upload_that_comes_after_the_goodbye_does_not_make_a_client_present(nats_server):
    async def lived():
        content = run_content(FEDOGD, LOGISTIC, gather=1)
        async with (
            serving(nats_server.url, content) as (hub, _),
            await joined(nats_server.url, hub, "0") as learner,
        ):
            state = lambda: hub.status()["clients"]["0"]["state"]  # noqa: E731
            await until(lambda: state() == "present")
            connection, subject = learner.session.uplink._connection, hub.subjects.heartbeat("0")
            await connection.publish(subject, GOODBYE)
            await until(lambda: state() == "away")
            for x, y in rows(1):
                await learner.learn_one(x, y)
            await until(lambda: hub.aggregator.records.merged[0] == 1)
            assert state() == "away"
            await connection.publish(subject, b"")
            await until(lambda: state() == "present")

    asyncio.run(lived())


def test_in_lockstep_it_must_bring_its_folder(nats_server):
    async def lived():
        content = run_content(FEDOGD, LOGISTIC, clients=1, pace="lockstep")
        async with serving(nats_server.url, content) as (hub, _):
            async with await joined(nats_server.url, hub, "0") as learner:
                await learner.learn_one(*next(rows(1)))
            with pytest.raises(BrokenRun, match="give the folder that it had"):
                await joined(nats_server.url, hub, "0")

    asyncio.run(lived())


def test_nobody_waits_for_who_is_not_there(nats_server):
    async def lived():
        content = run_content(FEDOGD, LOGISTIC, clients=3, deadline=10**6, quorum=1, guard=False)
        async with (
            serving(nats_server.url, content) as (hub, _),
            await joined(nats_server.url, hub, "0") as one,
        ):
            each = rows(20)
            await one.learn_one(*next(each))
            await until(lambda: hub.aggregator.records.merged.tolist() == [1, 0, 0])  # alone
            two = await joined(nats_server.url, hub, "1")
            await until(lambda: hub.status()["clients"]["1"]["state"] == "present")
            await one.learn_one(*next(each))
            await asyncio.sleep(0.5)
            assert hub.aggregator.version == 1  # the other is there, and waited for
            await two.close()
            await until(lambda: hub.aggregator.records.merged.tolist() == [2, 0, 0])

    asyncio.run(lived())


def test_the_last_to_leave_does_not_write_the_model(nats_server):
    """Of three clients, two are wanted in a merge; at most the deadline later, when they have come."""

    async def lived():
        content = run_content(FEDOGD, LOGISTIC, clients=3, deadline=0.2)
        async with (
            serving(nats_server.url, content) as (hub, _),
            await joined(nats_server.url, hub, "0") as one,
            await joined(nats_server.url, hub, "1") as two,
        ):
            each = rows(20)
            await one.learn_one(*next(each))
            await asyncio.sleep(0.6)
            assert hub.aggregator.version == 0
            await two.learn_one(*next(each))
            await until(lambda: hub.aggregator.version == 1)
            before = hub.aggregator.model.copy()
            await two.close()
            for _ in range(3):
                await one.learn_one(*next(each))
            await asyncio.sleep(0.6)
            assert hub.aggregator.version == 1
            assert np.array_equal(hub.aggregator.model, before)
            assert hub.status()["waiting"] == {"clients": 1, "quorum": 2}

    asyncio.run(lived())
