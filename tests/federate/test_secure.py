"""Permissions of a server set up by `secure`: the federation works, and nothing else is allowed."""

import asyncio
import contextlib
import json

import nats
import pytest
from nats.js.errors import NotFoundError

import mainstem as ms
from mainstem.engines.federate.client.learner import join_async
from mainstem.engines.federate.transport import connection as connections
from mainstem.replay import samples_at
from tests.federate.in_process import until
from tests.federate.secured import STEPS, WAIT, hubs, intruder, server_state, settled


def test_a_federation_works_through_it(secured_server):
    folder, url = secured_server
    stream = ms.streams.digits(2)

    async def client(name, k):
        path = folder / f"{name}.creds"
        async with await join_async(url, run="r", client=name, credentials=path) as learner:
            for sample in samples_at(stream, 3, k, 1, STEPS, "float32"):
                await learner.step_with(sample)
            return learner.step, learner.session.uplink.latest.version, learner.refusals

    async def main():
        async with hubs(secured_server) as (_, (hub, _)):
            start = hub.aggregator.model.copy()
            serve = asyncio.create_task(hub.serve())
            ends = await asyncio.wait_for(asyncio.gather(client("a", 0), client("b", 1)), 20)
            await asyncio.wait_for(serve, WAIT)
            return hub, start, ends

    hub, start, ends = asyncio.run(main())
    assert ends == [(STEPS, STEPS, [])] * 2
    assert hub.aggregator.version == STEPS
    assert abs(hub.aggregator.model - start).max() > 0
    assert all(client["merged"] == STEPS for client in hub.status()["clients"].values())


def test_a_client_receives_its_refusals(secured_server):
    async def main():
        async with (
            hubs(secured_server) as (hub, _),
            intruder(secured_server) as (connection, errors),
        ):
            refusals = await connection.subscribe("ms.r.no.a")
            await settled(connection)
            await hub.publish("ms.r.no.a", b"late")
            return (await refusals.next_msg(WAIT)).data, errors

    assert asyncio.run(main()) == (b"late", [])


@pytest.mark.parametrize("subject", ["ms.r.pulse", "ms.r.candidate.0", "ms.r.model.0"])
def test_a_client_receives_from_the_hub_and_cannot_publish_for_it(secured_server, subject):
    async def main():
        async with hubs(secured_server) as (hub, _), intruder(secured_server) as (me, errors):
            received = await me.subscribe(subject)
            await settled(me)
            await hub.publish(subject, b"hub")
            first = (await received.next_msg(WAIT)).data
            listening = await hub.subscribe(subject)
            await settled(hub)
            await me.publish(subject, b"intruder")
            await settled(me)
            with pytest.raises(nats.errors.TimeoutError):
                await listening.next_msg(0.3)
            return first, errors

    first, errors = asyncio.run(main())
    assert first == b"hub"
    assert any("permissions violation" in str(error).lower() for error in errors)


def test_a_client_sends_heartbeats(secured_server):
    async def main():
        async with hubs(secured_server) as (hub, _), intruder(secured_server) as (me, errors):
            signs = await hub.subscribe("ms.r.here.*")
            await settled(hub)
            await me.publish("ms.r.here.a")
            return (await signs.next_msg(WAIT)).subject, errors

    assert asyncio.run(main()) == ("ms.r.here.a", [])


def test_the_hub_reads_more_than_the_server_sends_unasked(secured_server):
    """The server waits for a message on $JS.FC before it sends more."""
    many = 60

    async def main():
        async with hubs(secured_server) as (hub, (run, _)), intruder(secured_server) as (me, _):
            size = run.aggregator.most_bytes  # the stream takes no more
            for n in range(many):
                await me.jetstream().publish("ms.r.up.a", bytes([n]) * size)
            js = hub.jetstream()
            read = await js.subscribe("ms.r.up.a", stream="ms-r-up", ordered_consumer=True)
            got = []
            while bytes([many - 1]) not in got:
                got.append((await read.next_msg(WAIT)).data[:1])
            assert got[-many:] == [bytes([n]) for n in range(many)]

    asyncio.run(main())


def test_the_hub_takes_commands_from_its_own_credential(secured_server):
    async def main():
        async with (
            hubs(secured_server) as (_, found),
            intruder(secured_server, "hub") as (connection, _),
        ):
            for command, state in (("pause", "paused"), ("resume", "running")):
                order = json.dumps({"order": command}).encode()
                answer = await connection.request("ms.other.control", order, timeout=WAIT)
                assert json.loads(answer.data)["state"] == state
                assert found[1].status()["state"] == state

    asyncio.run(main())


def test_the_observer_reads_the_status_of_the_runs_and_changes_nothing(secured_server):
    forbidden = (
        *("ms.r.control", "ms.r.up.a", "ms.r.status", "ms.r.spec", "$KV.ms-r-hub.state"),
        *("$JS.API.STREAM.DELETE.ms-r-up", "$JS.API.STREAM.MSG.GET.ms-r-up"),
        *("$JS.API.DIRECT.GET.ms-r-down.ms.r.model.0", "$JS.API.CONSUMER.CREATE.ms-r-up"),
    )

    async def main():
        async with (
            hubs(secured_server) as (hub, found),
            intruder(secured_server, "observer") as (me, errors),
        ):
            assert await connections.runs(me) == await connections.runs(hub) == ["other", "r"]
            js = me.jetstream()
            for what in ("status", "spec"):
                assert (await js.get_msg("ms-r-down", subject=f"ms.r.{what}", direct=True)).data
            statuses = await me.subscribe("ms.*.status")
            await settled(me)
            await found[0]._publish_status()
            assert (await statuses.next_msg(WAIT)).subject == "ms.r.status"
            assert errors == []
            before = await server_state(hub, found)
            for subject in forbidden:
                await me.publish(subject, b"finish", reply="ms.r.control")
            for subject in ("ms.r.status", "ms.r.spec"):
                await me.publish(f"$JS.API.DIRECT.GET.ms-r-down.{subject}", b"", reply="ms.r.spec")
            await settled(me)
            assert await connections.runs(me)
            assert [
                subject for subject in forbidden if not denied(errors, "publish", subject)
            ] == []
            assert await server_state(hub, found) == before

    asyncio.run(main())


def denied(errors, what, subject):
    """Whether the server has reported that this is not allowed."""
    wanted = f'permissions violation for {what} to "{subject}"'.lower()
    return any(wanted in error.lower() for error in errors)


NOT_TO_PUBLISH = (
    *("ms.r.up.b", "ms.r.model.0", "ms.r.spec", "ms.r.status", "ms.r.no.b", "_INBOX_b.x"),
    *("ms.r.here.b", "ms.r.control", "ms.other.control", "ms.other.up.a", "ms.other.up.c"),
    *("$KV.ms-r-hub.state", "$JS.API.DIRECT.GET.KV_ms-r-hub.$KV.ms-r-hub.state"),
    "$JS.API.STREAM.MSG.GET.KV_ms-r-hub",
    "$JS.API.DIRECT.GET.ms-other-down.ms.other.model.0",
    "$JS.API.DIRECT.GET.ms-other-down.ms.other.spec",
    *("$JS.API.DIRECT.GET.ms-r-down", "$JS.API.DIRECT.GET.ms-r-up.ms.r.up.b"),
    *("$JS.API.STREAM.MSG.GET.ms-r-up", "$JS.API.STREAM.MSG.DELETE.ms-r-up"),
    *("$JS.API.STREAM.CREATE.mine", "$JS.API.STREAM.UPDATE.ms-r-down"),
    *("$JS.API.STREAM.DELETE.ms-r-up", "$JS.API.STREAM.PURGE.ms-r-up"),
    *("$JS.API.STREAM.INFO.ms-r-up", "$JS.API.STREAM.NAMES", "$JS.hub.API.STREAM.NAMES"),
    *("$JS.API.CONSUMER.CREATE.ms-r-up", "$JS.API.CONSUMER.DURABLE.CREATE.ms-r-up.mine"),
    *("$JS.API.CONSUMER.CREATE.ms-r-up.mine.ms.r.up.b", "$JS.API.INFO", "$SYS.REQ.SERVER.PING"),
)


def test_a_client_publishes_only_its_own(secured_server):
    async def main():
        async with hubs(secured_server) as (hub, found), intruder(secured_server) as (me, errors):
            answers = await me.subscribe("_INBOX_a.>")
            before = await server_state(hub, found)
            for subject in NOT_TO_PUBLISH:
                await me.publish(subject, b"finish", reply="_INBOX_a.answer")
            await settled(me)
            assert [
                subject for subject in NOT_TO_PUBLISH if not denied(errors, "publish", subject)
            ] == []
            assert await server_state(hub, found) == before
            assert answers.pending_msgs == 0
            await me.publish("ms.r.up.a", b"mine", reply="_INBOX_a.answer")
            assert json.loads((await answers.next_msg(WAIT)).data)["stream"] == "ms-r-up"

    asyncio.run(main())


NOT_TO_SUBSCRIBE = (
    *("_INBOX_b.>", "_INBOX_hub.>", "_INBOX.>", "ms.r.up.>", "ms.r.up.b", "ms.r.no.b", "ms.r.no.*"),
    *("ms.other.model.*", "ms.other.spec", "ms.r.control", "ms.r.status", "ms.*.model.*"),
    *("ms.>", ">", "$KV.>", "$JS.API.>", "$SYS.>"),
)


def test_a_client_receives_only_what_is_for_it(secured_server):
    async def main():
        async with (
            hubs(secured_server) as (hub, _),
            intruder(secured_server) as (me, errors),
            intruder(secured_server, "b") as (b, _),
        ):
            closed = [await me.subscribe(subject) for subject in NOT_TO_SUBSCRIBE]
            mine, last = [await me.subscribe(each) for each in ("ms.r.no.a", "ms.r.model.*")]
            await settled(me)
            assert [s for s in NOT_TO_SUBSCRIBE if not denied(errors, "subscription", s)] == []
            await b.jetstream().publish("ms.r.up.b", b"secret")
            for subject in ("ms.r.no.b", "ms.r.no.a", "ms.r.status", "ms.other.model.0"):
                await hub.publish(subject, b"secret")
            await hub.publish("ms.r.model.0", b"the last")
            assert (await last.next_msg(WAIT)).data == b"the last"
            assert mine.pending_msgs == 1
            assert [each.subject for each in closed if each.pending_msgs] == []

    asyncio.run(main())


def test_a_client_reads_the_model_and_the_spec_of_its_run_alone(secured_server):
    async def main():
        async with hubs(secured_server), intruder(secured_server) as (me, errors):
            js = me.jetstream(timeout=0.3)
            for what in ("model.0", "spec"):
                assert (await js.get_msg("ms-r-down", subject=f"ms.r.{what}", direct=True)).data
            assert errors == []
            for what in ("model.0", "spec"):
                with pytest.raises(TimeoutError):
                    await js.get_msg("ms-other-down", subject=f"ms.other.{what}", direct=True)

    asyncio.run(main())


def test_no_answer_of_the_server_can_be_sent_where_its_asker_may_not_write(secured_server):
    """JetStream answers on any subject that a request names, without checking permissions."""
    subjects = (
        *("ms.r.up.b", "ms.r.spec", "ms.r.model.0", "ms.r.status", "ms.r.control"),
        *("$KV.ms-r-hub.state", "$JS.API.STREAM.PURGE.ms-r-down", "ms.other.spec", "_INBOX_b.x"),
    )

    async def main():
        async with (
            hubs(secured_server) as (hub, found),
            intruder(secured_server) as (me, _),
            intruder(secured_server, "b") as (b, _),
        ):
            elsewhere = await b.subscribe("_INBOX_b.>")
            await settled(b)
            (uploads, *others), rest = await server_state(hub, found)
            for reply in subjects:
                await me.publish("ms.r.up.a", b"mine", reply=reply)
                await me.publish("$JS.API.DIRECT.GET.ms-r-down.ms.r.spec", b"", reply=reply)
            await me.jetstream().publish("ms.r.up.a", b"the last")
            await settled(b)
            (after, *same), rest_after = await server_state(hub, found)
            assert same == others
            assert rest_after == rest
            assert after[1] == uploads[1] + len(subjects) + 1
            assert elsewhere.pending_msgs == 0
            with pytest.raises(NotFoundError):
                await hub.jetstream().get_msg(
                    "ms-r-up", seq=uploads[1] + 1, subject="ms.r.up.b", next=True
                )

    asyncio.run(main())


@pytest.mark.slow
def test_a_client_opens_few_connections_and_subscriptions(secured_server):
    """One that opens hundreds is stopped, and the others still come in."""

    async def main():
        async with contextlib.AsyncExitStack() as stack, hubs(secured_server):
            opened = 0
            with contextlib.suppress(nats.errors.Error):
                for _ in range(40):
                    await stack.enter_async_context(intruder(secured_server))
                    opened += 1
            assert 8 <= opened < 30
            async with intruder(secured_server, "b") as (b, _):
                with contextlib.suppress(nats.errors.Error):
                    for n in range(1000):
                        await b.subscribe(f"_INBOX_b.{n}")
                    await settled(b)
                await until(lambda: not b.is_connected)
            async with intruder(secured_server, "b") as (b, errors):
                for n in range(20):
                    await b.subscribe(f"_INBOX_b.{n}")
                await settled(b)
                assert not errors

    asyncio.run(main())
