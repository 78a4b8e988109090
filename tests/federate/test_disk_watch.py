"""A NATS server that stores nothing: the hub says so, and makes broken streams anew when there is room.

Full disks of real servers are in test_disturbed.py.
"""

import asyncio

import pytest

from mainstem.engines.federate.client import session as sessions
from mainstem.engines.federate.hub import hub as hubs
from mainstem.engines.federate.hub.disk_watch import DiskWatch
from mainstem.engines.federate.protocol.subjects import Subjects
from tests.federate.in_process import joined, run_content, serving, until

LINEAR = {"name": "linear", "features": 2, "intercept": False}
FEDOGD = {"name": "fedogd", "step": 0.1}
X, Y = [1.0, 2.0], 1.0


@pytest.mark.parametrize("stream", ["upload", "broadcast", "state"])
def test_a_stream_that_remains_broken_is_made_anew(stream, nats_server, monkeypatch, caplog):
    monkeypatch.setattr(hubs, "DISK", 0.1)

    async def lived():
        async with (
            serving(nats_server.url, run_content(FEDOGD, LINEAR, gather=1)) as (hub, _),
            await joined(nats_server.url, hub, "0") as learner,
        ):
            await learner.learn_one(X, Y)
            await until(lambda: hub.aggregator.records.merged[0] == 1)
            answered, epoch = hub._disk._answered, hub.aggregator.epoch
            subject = {
                "upload": hub.subjects.upload("$probe"),
                "broadcast": hub.subjects.status,
                "state": f"$KV.{hub.subjects.bucket}.probe",
            }[stream]
            broken = [subject, hub._disk._probe] * 3  # first there is no room, three times
            broken.append(subject)

            async def rarely(subject, message):
                if broken and subject == broken[0]:
                    broken.pop(0)
                    return False
                return await answered(subject, message)

            hub._disk._answered = rarely
            await until(lambda: not hub._disk.stores)
            hub._check_health()  # as once a second
            assert [each["alarm"] for each in hub.status()["alarms"]] == ["server_full"]
            await until(lambda: hub.aggregator.epoch > epoch)
            await learner.learn_one(X, Y)
            await until(lambda: hub.aggregator.records.merged[0] == 2)

    asyncio.run(lived())
    assert caplog.text.count("stores nothing: is its disk full?") == 1
    assert caplog.text.count("has room again: streams are made anew") == 1


def test_a_full_disk_is_noticed_with_the_first_stream(monkeypatch):
    """The others take seconds, and in the meantime there may be room again."""
    seen = []

    async def lived():
        watch = DiskWatch(None, Subjects("main"), bytes)

        async def is_stored(stream):
            seen.append(watch.stores)
            return False

        async def has_room():
            return False

        monkeypatch.setattr(watch, "_is_stored", is_stored)
        monkeypatch.setattr(watch, "_has_room", has_room)
        assert not await watch.removed()

    asyncio.run(lived())
    assert seen == [True, False, False]


@pytest.mark.parametrize("folder", [True, False])
def test_a_client_that_leaves_says_what_it_has_not_sent(
    folder, nats_server, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(sessions, "CLOSE_TIMEOUT", 0.1)

    async def lived():
        async with serving(nats_server.url, run_content(FEDOGD, LINEAR, gather=1)) as (hub, _):
            place = {"folder": tmp_path / "client"} if folder else {}
            async with await joined(nats_server.url, hub, "0", **place) as learner:
                learner.session.uplink.send = lambda *given: asyncio.sleep(60)
                await learner.learn_one(X, Y)
            if folder:
                async with await joined(nats_server.url, hub, "0", **place):
                    await until(lambda: hub.aggregator.records.merged[0] == 1)

    asyncio.run(lived())
    kept = "its folder has them: join again" if folder else "they are lost"
    assert f"client 0: 1 uploads have not reached the server: {kept}" in caplog.text
