"""A run is changed while it lives: roster and rules, by order and by an edited file."""

import asyncio
import json

import numpy as np
import pytest

from mainstem.engines.federate.control import send_order
from mainstem.engines.federate.hub.hub import Hub
from mainstem.engines.federate.protocol.changes import Change, changed
from mainstem.engines.federate.protocol.run_document import parse
from mainstem.engines.federate.transport import connection as connections
from mainstem.errors import BadSpec, BrokenRun, MainstemError
from tests.federate.in_process import joined, run_content, serving, until

LINEAR = {"name": "linear", "features": 2, "intercept": False}
FEDOGD = {"name": "fedogd", "step": 0.1}
X, Y = np.array([1.0, 2.0], np.float32), 3.0


def content(**rules):
    return run_content(FEDOGD, LINEAR, **{"clients": ["a", "b"], "gather": 1} | rules)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Change(set=["problem.features=3"]), "problem.features cannot change"),
        (Change(set=["federate.pace=lockstep"]), "federate.pace cannot change"),
        (
            Change(set=["federate.seed=1", "federate.dtype=float64"]),
            "federate.dtype, federate.seed",
        ),
        (Change(set=["federate.quorum=9"]), "quorum must"),
        (Change(remove=["c"]), "name clients of the run"),
        (Change(rename={"a": "b"}), "name each client once"),
        (Change(add=["a"]), "name each client once"),
        (Change(add=["a.b"]), "letters, digits"),
    ],
)
def test_what_may_not_change_is_refused(change, expected):
    document = parse(content())
    with pytest.raises(MainstemError, match=expected):
        changed(document, change)


def test_a_change_is_the_next_revision_of_the_same_run():
    document = parse(content())
    change = Change(
        set=["federate.deadline=2", "algorithm.step=0.3"],
        add=["c"],
        remove=["b"],
        rename={"a": "z"},
    )
    found = changed(document, change)
    assert (found.digest, found.revision, found.clients) == (document.digest, 1, ("z", "c"))
    assert (found.rules.deadline, dict(found.formerly)) == (2, {"z": "a"})
    again = changed(found, Change(rename={"z": "y"}))
    assert (again.revision, dict(again.formerly)) == (2, {"y": "a"})


def test_a_roster_changes_under_its_clients(nats_server, tmp_path):
    """One is added, one removed, one renamed; what each has sent is merged once."""

    async def order(hub, **asked):
        return await send_order(nats_server.url, hub.document.rules.run, "change", **asked)

    async def lived():
        async with serving(nats_server.url, content(), folder=tmp_path / "hub") as (hub, _):
            async with (
                await joined(nats_server.url, hub, "a", folder=tmp_path / "a") as a,
                await joined(nats_server.url, hub, "b") as b,
            ):
                for each in (a, b):
                    await each.learn_one(X, Y)
                await until(lambda: hub.aggregator.records.received.sum() == 2)
                before = hub.aggregator.model
                status = await order(hub, add=["c"])
                assert (status["revision"], list(status["clients"])) == (1, ["a", "b", "c"])
                assert (hub.aggregator.model == before).all()
                async with await joined(nats_server.url, hub, "c") as c:
                    for each in (a, b, c):
                        await each.learn_one(X, Y)
                    await until(lambda: hub.aggregator.records.received.tolist() == [2, 2, 1])
                await order(hub, remove=["b"], rename={"a": "z"})
                await until(lambda: b.session.uplink.ended and a.session.uplink.ended)
                with pytest.raises(BrokenRun, match="has no client 'b'"):
                    await b.learn_one(X, Y)
                with pytest.raises(BrokenRun, match="is called 'z' now"):
                    await a.learn_one(X, Y)
            async with await joined(nats_server.url, hub, "z", folder=tmp_path / "a") as z:
                assert z.step == 2
                await z.learn_one(X, Y)
                await until(lambda: hub.aggregator.records.received.tolist() == [3, 1])
        log = (tmp_path / "hub" / "merges.jsonl").read_text()
        lines = [json.loads(line) for line in log.splitlines()]
        entered = [tuple(each) for line in lines for each in line.get("uploads", [])]
        steps = sorted((name, step) for name, step, _ in entered)
        assert steps == [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("c", 1), ("z", 3)]
        assert [line["revision"] for line in lines if "changed" in line] == [1, 2]

    asyncio.run(lived())


def test_clients_take_a_new_step_size_with_the_next_broadcast(nats_server):
    async def lived():
        given = run_content(FEDOGD, LINEAR, clients=["a"], pace="lockstep")
        async with (
            serving(nats_server.url, given) as (hub, _),
            await joined(nats_server.url, hub, "a") as learner,
        ):
            await learner.learn_one(X, Y)
            before, run = hub.aggregator.model, hub.document.rules.run
            await send_order(nats_server.url, run, "change", set=["algorithm.step=0.02"])
            await learner.learn_one(X, Y)
            assert learner.session.document.revision == 1
            return before, hub.aggregator.model

    before, after = asyncio.run(lived())
    assert np.allclose(before, 0.1 * Y * X, atol=1e-6)
    assert np.allclose(after, before - 0.02 * (before @ X - Y) * X, atol=1e-6)


def test_an_edited_file_changes_the_run_and_keeps_what_was_ordered(nats_server):
    async def lived():
        given = content(staleness=7)
        async with serving(nats_server.url, given) as (hub, _):
            run = hub.document.rules.run
            await send_order(nats_server.url, run, "change", set=["federate.pending=3"], add=["c"])
        given["federate"] |= {"staleness": 9}
        async with serving(nats_server.url, given) as (hub, _):
            rules = hub.document.rules
            assert (rules.pending, rules.staleness, rules.clients) == (3, 9, ("a", "b", "c"))
            assert hub.document.revision == 2
        async with serving(nats_server.url, given) as (hub, _):
            assert hub.document.revision == 2  # nothing has changed
        given["problem"] = LINEAR | {"features": 3}
        connection = await connections.connect(nats_server.url)
        with pytest.raises(BadSpec, match=r"problem\.features cannot change while the run lives"):
            await Hub(parse(given), connection).open()
        await connection.close()

    asyncio.run(lived())


def test_an_added_client_is_heard_by_a_hub_that_is_started_again(nats_server):
    """With its old file: what was ordered is in the state."""

    async def lived():
        given = content()
        async with serving(nats_server.url, given) as (hub, _):
            run = hub.document.rules.run
            await send_order(nats_server.url, run, "change", add=["c"])
        async with (
            serving(nats_server.url, given) as (hub, _),
            await joined(nats_server.url, hub, "c") as learner,
        ):
            await learner.learn_one(X, Y)
            await until(lambda: hub.aggregator.records.received[2] == 1)
            await until(lambda: hub.status()["clients"]["c"]["state"] == "present")

    asyncio.run(lived())


def test_uploads_on_their_way_are_taken_although_fewer_may_wait_now(nats_server):
    """A client is not notified in time: what it has sent under the old rule is merged."""

    async def lived():
        given = content(gather=2, quorum=2, pending=8, deadline=10**6)
        async with (
            serving(nats_server.url, given) as (hub, _),
            await joined(nats_server.url, hub, "a") as one,
            await joined(nats_server.url, hub, "b") as other,
        ):
            run = hub.document.rules.run
            await send_order(nats_server.url, run, "change", set=["federate.pending=2"])
            one.session._follow_document = lambda: None  # it does not know yet
            for _ in range(8):
                await one.learn_one(X, Y)
            await until(lambda: hub.aggregator.uploaded[0] == 8)
            await other.learn_one(X, Y)
            await until(lambda: hub.aggregator.records.received.tolist() == [8, 1])
            assert not hub.aggregator.records.refused[0]

    asyncio.run(lived())


def test_a_run_goes_back_to_the_merge_that_is_named(nats_server, tmp_path):
    async def lived():
        given = content(checkpoint_every=2, checkpoints=3)
        async with serving(nats_server.url, given, folder=tmp_path) as (hub, _):
            models = []
            async with await joined(nats_server.url, hub, "a") as learner:
                for n in range(1, 12):
                    await learner.learn_one(X, Y)
                    await until(lambda n=n: hub.aggregator.version == n)
                    models.append(hub.aggregator.model)
                run = hub.document.rules.run
                with pytest.raises(MainstemError, match=r"no checkpoint of merge 5: .* 6, 8, 10"):
                    await send_order(nats_server.url, run, "back", merge=5)
                status = await send_order(nats_server.url, run, "back", merge=8)
                assert (status["version"], status["checkpoints"]) == (12, [6, 8, 10])
                assert (hub.aggregator.model == models[7]).all()
                await learner.learn_one(X, Y)
                await until(lambda: hub.aggregator.version == 13)

    asyncio.run(lived())


@pytest.mark.parametrize("rule", ["newest", "first"])
def test_of_two_processes_with_one_name_one_is_heard(rule, nats_server):
    async def lived():
        async with serving(nats_server.url, content(twice=rule)) as (hub, _):
            first = await joined(nats_server.url, hub, "a")
            await first.learn_one(X, Y)
            await until(lambda: hub.aggregator.records.received[0] == 1)
            second = await joined(nats_server.url, hub, "a")
            heard, other = (second, first) if rule == "newest" else (first, second)
            await until(lambda: other.session.uplink.ended, 15)
            with pytest.raises(BrokenRun, match="another process has joined"):
                await other.learn_one(X, Y)
            await heard.learn_one(X, Y)
            await until(lambda: hub.aggregator.records.received[0] == 2)
            alarms = {each["alarm"] for each in hub.status()["alarms"]}
            for each in (first, second):
                await each.close()
            return alarms

    assert asyncio.run(lived()) == {"client_twice"}


def test_a_client_is_forgiven(nats_server):
    async def lived():
        async with serving(nats_server.url, content(strikes=2)) as (hub, _):
            for _ in range(2):
                await hub._connection.publish(hub.subjects.upload("a"), b"nonsense")
            await until(lambda: 0 in hub.aggregator.records.quarantined)
            await until(lambda: [each["alarm"] for each in hub.status()["alarms"]])
            assert hub.status()["alarms"][0]["alarm"] == "client_quarantined"
            found = await send_order(nats_server.url, hub.document.rules.run, "forgive", client="a")
            assert found["clients"]["a"]["state"] != "quarantined"
            assert not found["alarms"]
            with pytest.raises(MainstemError, match="has no client 'x'"):
                await send_order(nats_server.url, hub.document.rules.run, "forgive", client="x")

    asyncio.run(lived())
