"""What operators see: status, exit codes, alarms, metrics, health, logs, signals."""

import asyncio
import json
import logging
import re
import time

import numpy as np
import pytest

import mainstem as ms
from mainstem.cli.log_format import JsonLines, TextLines
from mainstem.engines.federate import control, event_log
from mainstem.engines.federate.hub import alarms as alarm_module
from mainstem.engines.federate.hub.aggregator import Aggregator
from mainstem.engines.federate.hub.alarms import Alarm, Alarms
from mainstem.engines.federate.hub.metrics import Metrics, MetricsServer
from mainstem.errors import MainstemError
from tests.federate.in_process import joined, run_content, serving, until
from tests.federate.processes import ROOT, asked
from tests.federate.secured import free_port

LINEAR = {"name": "linear", "features": 2, "intercept": False}
FEDOGD = {"name": "fedogd", "step": 0.1}
X, Y = np.array([1.0, 2.0], np.float32), 3.0
DOCS = ROOT / "docs" / "operations.md"


def content(**rules):
    return run_content(FEDOGD, LINEAR, **{"clients": ["a", "b"], "gather": 1} | rules)


# --- alarms ----------------------------------------------------------------------------------------


def test_each_alarm_and_each_event_is_documented():
    page = DOCS.read_text()
    assert all(f"| `{alarm}` |" in page for alarm in Alarm)


def test_an_alarm_is_logged_when_it_is_raised_and_when_it_ends(caplog, monkeypatch):
    shown = Alarms("run")
    with caplog.at_level(logging.INFO, "mainstem"):
        for _ in range(3):
            shown.update(Alarm.CLIENT_LOST, True, "is not heard", "a")
        assert [each["alarm"] for each in shown.current()] == ["client_lost"]
        shown.update(Alarm.CLIENT_LOST, False, "is not heard", "a")
        assert shown.current() == []
        for _ in range(3):
            shown.happened(Alarm.STORE_LOST, "lost")
        later = time.time() + alarm_module.SHOWN + 1
        assert len(shown.current()) == 1
        monkeypatch.setattr(time, "time", lambda: later)
        assert shown.current() == []
    assert [record.event for record in caplog.records] == [
        *("client_lost", "alarm_ends"),
        *("store_lost", "alarm_ends"),
    ]


# --- status ----------------------------------------------------------------------------------------


def test_a_hub_that_is_not_heard_does_not_answer(nats_server, monkeypatch):
    monkeypatch.setattr(control, "PATIENCE", 1.5)

    async def lived():
        given = content()
        run = given["federate"]["run"]
        async with serving(nats_server.url, given) as (hub, work):
            (found,) = await control.statuses(nats_server.url, run=run)
            assert (found["state"], found["alarms"]) == ("running", [])
            assert found["age"] < 5
            assert not control.needs_somebody(found)
            work.cancel()  # as if it was killed
            for task in asyncio.all_tasks():
                if "_send_heartbeats" in repr(task):
                    task.cancel()
            await asyncio.sleep(0.1)
            (found,) = await control.statuses(nats_server.url, run=run)
            assert found["state"] == "not answering"
            assert control.needs_somebody(found)
            hub._ended = True

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(lived())


def test_a_stopped_run_and_one_that_is_not_there(nats_server):
    async def lived():
        given = content()
        run = given["federate"]["run"]
        async with serving(nats_server.url, given):
            pass
        (found,) = await control.statuses(nats_server.url, run=run)
        with pytest.raises(MainstemError, match="nothing: there is no such run"):
            await control.statuses(nats_server.url, run="nothing")
        return found["state"]

    assert asyncio.run(lived()) == "stopped"


def test_a_foreign_stream_does_not_blind_an_observer(nats_server):
    """Another program has a stream with a status that is no status."""

    async def lived():
        given = content()
        async with serving(nats_server.url, given) as (hub, _):
            js = hub._js
            await js.add_stream(name="ms-foreign-down", subjects=["ms.foreign.status"])
            await js.publish("ms.foreign.status", b"\xff not JSON")
            found = await control.statuses(nats_server.url)
            await js.delete_stream("ms-foreign-down")
            return [each["run"] for each in found], given["federate"]["run"]

    found, run = asyncio.run(lived())
    assert run in found


# --- metrics and health ----------------------------------------------------------------------------


def test_metrics_and_health(nats_server, tmp_path):
    port = free_port()

    async def lived():
        async with ms.serve_async(
            content(), folder=tmp_path, url=nats_server.url, metrics=f"127.0.0.1:{port}"
        ) as hub:
            address = f"http://127.0.0.1:{port}"
            async with ms.join_async(
                nats_server.url, run=hub.status()["run"], client="a"
            ) as learner:
                await learner.learn_one(X, Y)
                await until(lambda: hub.status()["version"] == 1)
                await asyncio.sleep(2.1)
                ask = asyncio.to_thread
                text = (await ask(asked, f"{address}/metrics"))[1]
                health = [await ask(asked, f"{address}{path}") for path in ("/healthz", "/readyz")]
                none = await ask(asked, f"{address}/else")
            return hub.status()["run"], text, health, none

    run, text, health, none = asyncio.run(lived())
    assert health == [(200, "ok\n"), (200, "ok\n")]
    assert none[0] == 404
    for line in (
        f'mainstem_merges_total{{run="{run}"}} 1.0',
        f'mainstem_client_present{{client="a",run="{run}"}} 1.0',
        f'mainstem_client_uploads_total{{client="a",run="{run}"}} 1.0',
        f'mainstem_connected{{run="{run}"}} 1.0',
        "mainstem_round_seconds_count 1.0",
        "process_resident_memory_bytes",
    ):
        assert line in text


def test_metrics_show_that_the_server_is_gone(own_server, tmp_path):
    port = free_port()

    async def lived():
        place = {"folder": tmp_path, "url": own_server.url, "metrics": f"127.0.0.1:{port}"}
        async with ms.serve_async(content(), **place):
            own_server.stop()
            seen, end = "", time.monotonic() + 10
            while not re.search(r"mainstem_connected\{.*\} 0\.0", seen):
                assert time.monotonic() < end, seen
                await asyncio.sleep(0.2)
                seen = (await asyncio.to_thread(asked, f"http://127.0.0.1:{port}/metrics"))[1]
            ready = await asyncio.to_thread(asked, f"http://127.0.0.1:{port}/readyz")
            own_server.start()
            return ready

    assert asyncio.run(lived()) == (503, "the run is disconnected\n")


def test_a_hub_that_stands_still_is_not_healthy(monkeypatch):
    metrics = Metrics()
    server = MetricsServer("127.0.0.1:0", metrics)
    try:
        base = f"http://127.0.0.1:{server.port}"
        assert asked(f"{base}/readyz") == (503, "the hub starts\n")
        metrics.update({"state": "disconnected"})
        assert asked(f"{base}/healthz")[0] == 200
        assert asked(f"{base}/readyz") == (503, "the run is disconnected\n")
        metrics._updated -= 60
        assert asked(f"{base}/healthz") == (503, "the hub has not moved for 60 seconds\n")
    finally:
        server.close()
    for wrong in ("9464", "host:", "host:port", "127.0.0.1:99999"):
        with pytest.raises(MainstemError, match="must be HOST:PORT"):
            MetricsServer(wrong, metrics)


# --- logs ------------------------------------------------------------------------------------------


def test_a_record_as_json_and_as_text(caplog):
    with caplog.at_level(logging.INFO, "mainstem"):
        event_log.warning("upload_refused", "an upload was refused", run="r", client="a", total=3)
    (record,) = caplog.records
    found = json.loads(JsonLines().format(record))
    assert found.pop("time").endswith("Z")
    assert found == {
        "level": "warning",
        "event": "upload_refused",
        "message": "r: client a: an upload was refused",
        "run": "r",
        "client": "a",
        "total": 3,
    }
    assert TextLines().format(record).endswith(" warning r: client a: an upload was refused")


def test_joins_leaves_and_refusals_are_logged(nats_server, caplog):
    async def lived():
        async with serving(nats_server.url, content()) as (hub, _):
            async with await joined(nats_server.url, hub, "a"):
                await until(lambda: hub._presence.is_present("a"))
                for _ in range(50):
                    await hub._connection.publish(hub.subjects.upload("b"), b"nonsense")
                await until(lambda: 1 in hub.aggregator.records.quarantined)
            await until(lambda: not hub._presence.is_present("a"))

    with caplog.at_level(logging.INFO, "mainstem"):
        asyncio.run(lived())
    events = [(record.event, record.facts.get("client")) for record in caplog.records]
    assert events.count(("client_joined", "a")) == 1
    assert events.count(("client_left", "a")) == 1
    assert events.count(("upload_refused", "b")) == 1  # of fifty


# --- clients ---------------------------------------------------------------------------------------


def test_figures_of_a_client_that_has_lost_its_folder(nats_server):
    """Its mean is over the samples that it knows of."""

    async def lived():
        means = []
        async with serving(nats_server.url, content()) as (hub, _):
            for n in range(1, 4):
                async with ms.join_async(
                    nats_server.url, run=hub.document.rules.run, client="a"
                ) as learner:
                    assert learner.step == n - 1
                    await learner.learn_one(0 * X, Y)
                    means.append(learner.mean_loss)
                    await until(lambda n=n: hub.aggregator.records.received[0] == n)
        return means

    means = asyncio.run(lived())
    assert means == [means[0]] * 3
    assert means[0] > 0


def test_a_client_starts_offline_and_what_it_learns_is_merged(own_server, tmp_path):
    async def lived():
        given = content(clients=["a"])
        run = given["federate"]["run"]
        async with (
            serving(own_server.url, given) as (hub, _),
            ms.join_async(own_server.url, run=run, client="a", folder=tmp_path) as learner,
        ):
            await learner.learn_one(X, Y)
            await until(lambda: hub.aggregator.version == 1)
        own_server.stop()
        async with ms.join_async(own_server.url, run=run, client="a", folder=tmp_path) as learner:
            assert learner.hub_is_away
            assert np.isfinite(learner.predict_one(X))
            for _ in range(3):
                await learner.learn_one(X, Y)
            await asyncio.to_thread(own_server.start)
            async with serving(own_server.url, given) as (hub, _):
                await until(lambda: hub.aggregator.records.received[0] == 4)
                await learner.learn_one(X, Y)
                await until(lambda: hub.aggregator.records.received[0] == 5)
                await until(lambda: not learner.hub_is_away)

    asyncio.run(lived())


def test_what_is_learnt_offline_is_sent_before_a_newer_model_is_taken(
    own_server, tmp_path, monkeypatch
):
    """Two uploads may be pending; the gradients of all later samples come in one."""
    sums, accept = [], Aggregator.accept

    def accepted(self, client, *words):
        found = accept(self, client, *words)
        if client == "a":
            sums.append(self.waiting[0, found.step].body.copy())
        return found

    monkeypatch.setattr(Aggregator, "accept", accepted)

    async def lived():
        given = content(clients=["a", "b"], pending=2, guard=False)
        run = given["federate"]["run"]
        async with serving(own_server.url, given) as (hub, _):
            async with ms.join_async(own_server.url, run=run, client="a", folder=tmp_path) as one:
                await one.learn_one(X, Y)
                await until(lambda: one.session.uplink.latest.version == 1)
                one.predict_one(X)  # takes the model
            model = hub.aggregator.model.copy()
        own_server.stop()
        async with ms.join_async(own_server.url, run=run, client="a", folder=tmp_path) as one:
            for _ in range(10):
                await one.learn_one(X, Y)
            assert (len(one.session.pending), one.session.skipped) == (2, 8)
            await asyncio.to_thread(own_server.start)
            async with (
                serving(own_server.url, given) as (hub, _),
                ms.join_async(own_server.url, run=run, client="b") as other,
            ):
                await other.learn_one(X, Y)  # there is a newer model
                await until(lambda: hub.aggregator.records.received[0] == 3)
                await until(lambda: one.session.uplink.latest.received[0] == 3)  # a newer model
                await one.learn_one(X, Y)
                await until(lambda: hub.aggregator.records.received[0] == 12)
        return model

    model = asyncio.run(lived())
    slopes = []
    for _ in range(11):
        slopes.append((model @ X - Y) * X)
        model = model - 0.1 * slopes[-1]
    assert len(sums) == 1 + 3
    assert np.allclose(np.sum(sums[1:], axis=0), np.sum(slopes, axis=0), rtol=1e-5)


def test_a_client_waits_for_its_server_and_its_run(own_server):
    async def lived():
        own_server.stop()
        given = content(clients=["a"])
        opening = asyncio.create_task(waiting(own_server.url, given["federate"]["run"]))
        await asyncio.sleep(1.5)
        await asyncio.to_thread(own_server.start)
        await asyncio.sleep(1.5)
        async with serving(own_server.url, given):
            learner = await asyncio.wait_for(opening, 20)
            await learner.close()

    async def waiting(url, run):
        return await ms.join_async(url, run=run, client="a", wait=60)

    asyncio.run(lived())


# --- a hub in a program ----------------------------------------------------------------------------


def test_a_hub_in_a_program(nats_server, tmp_path):
    with ms.serve(content(), folder=tmp_path, url=nats_server.url) as hub:
        run = hub.status()["run"]
        with ms.join(nats_server.url, run=run, client="a") as learner:
            learner.learn_one(X, Y)
            end = time.monotonic() + 20
            while hub.status()["version"] < 1:
                assert time.monotonic() < end
                time.sleep(0.05)
        assert np.allclose(hub.model, 0.05 * Y * X, atol=1e-6)
        assert hub.order("pause")["state"] == "paused"
        with pytest.raises(MainstemError, match="there is no order 'dance'"):
            hub.order("dance")
    assert (tmp_path / "model.safetensors").exists()
    begun = content(start=str(tmp_path / "model.safetensors"))
    with ms.serve(begun, folder=tmp_path / "second", url=nats_server.url) as hub:
        assert np.allclose(hub.model, 0.05 * Y * X, atol=1e-6)
        with ms.join(nats_server.url, run=hub.status()["run"], client="a") as learner:
            assert np.allclose(learner.predict_one(X), 0.05 * Y * X @ X, atol=1e-5)
    wrong = content(start=str(tmp_path / "nothing.safetensors"))
    with pytest.raises(MainstemError, match="start: there is no file"):
        ms.serve(wrong, folder=tmp_path / "third", url=nats_server.url)
