"""Restarts of a hub: compact forms of the kill tests, in one event loop on a real server.

A hub "dies" where a process would be killed: nothing after that point is done, and another hub takes over.
"""

import asyncio
import contextlib
import json

import jax
import numpy as np
import pytest

import mainstem as ms
from mainstem.base import Sample
from mainstem.engines.federate import faults
from mainstem.engines.federate.hub.aggregator import Aggregator
from mainstem.engines.federate.hub.hub import Hub
from mainstem.engines.federate.protocol.chunking import split
from mainstem.engines.federate.protocol.messages import (
    Reason,
    Refused,
    Upload,
    client_id,
    pack_upload,
)
from mainstem.engines.federate.protocol.run_document import parse
from mainstem.engines.federate.protocol.state_format import unpack
from mainstem.engines.federate.transport import connection as connections
from mainstem.engines.federate.transport.state_store import StateStore
from mainstem.replay import samples_at
from tests.federate.clusters import STORED, Server, ports
from tests.federate.in_process import joined, run_content, serving, until

LINEAR = {"name": "linear", "features": 2, "intercept": False}
FEDOGD = {"name": "fedogd", "step": 0.1}
COMPACT = ["hub before store", "hub after store"]  # write points in the gate
POINTS = ["hub before store", "hub after store", "hub within broadcast", "hub after broadcast"]


class Died(Exception):
    """Where a process would have been killed."""


def upload(document, client=0, step=1, version=0, **changes):
    body = np.full(document.message, 1.0 + step, document.dtype).tobytes()
    honest = Upload(
        document.digest,
        document.codec,
        client_id(document.clients[client]),
        step,
        version,
        1.0,
        1.0,
        body,
    )
    return pack_upload(honest._replace(**changes))


STEPS, CLIENTS = 10, 2
QUANTISED = {"step": 0.1, "rate": 0.7, "levels": 3, "blocks": 14}


def lockstep():
    """A run whose uploads are drawn, so that one that is lost or merged twice moves the model."""
    rules = {"pace": "lockstep", "steps": STEPS, "dtype": "float64", "seed": 3}
    return run_content({"name": "ofediq", **QUANTISED}, clients=CLIENTS, **rules)


async def live(url, hub, k, patience):
    stream = ms.streams.digits(clients=CLIENTS)
    async with await joined(url, hub, str(k)) as learner:
        for sample in samples_at(stream, 3, k, 1, STEPS, "float64"):
            await asyncio.wait_for(learner.step_with(sample), patience)


def is_the_simulation(model, folder):
    """The model of the hub is that of a run that nothing disturbed, and each upload was merged once."""
    run = ms.simulate(
        ms.guarded(ms.ofediq(**QUANTISED)),
        ms.problems.softmax(64, 10),
        ms.streams.digits(clients=CLIENTS),
        steps=STEPS,
        seed=3,
        dtype="float64",
        measure=(),
    )
    wanted = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(run.model)])
    assert np.allclose(model, wanted, rtol=0, atol=1e-9)
    lines = [json.loads(line) for line in (folder / "merges.jsonl").read_text().splitlines()]
    merged = [(client, step) for line in lines for client, step, _ in line.get("uploads", [])]
    assert sorted(merged) == sorted(
        (str(k), t) for k in range(CLIENTS) for t in range(1, STEPS + 1)
    )


def at_the_fifth(point, act):
    """`faults.reach` that acts when it reaches the point for the fifth time."""
    reached = []

    def reach(here):
        if here == point:
            reached.append(here)
            if len(reached) == 5:
                act()

    return reach


@pytest.mark.parametrize(
    "point",
    [p if p in COMPACT else pytest.param(p, marks=pytest.mark.slow) for p in POINTS],
)
def test_a_hub_that_dies_at_a_write_point_is_taken_over(point, nats_server, tmp_path, monkeypatch):
    content = lockstep()

    def die():
        raise Died

    monkeypatch.setattr(faults, "reach", at_the_fifth(point, die))

    async def serve(first=False):
        connection = await connections.connect(nats_server.url)
        hub = Hub(parse(content), connection, folder=tmp_path)
        with contextlib.suppress(Died):
            await hub.open()
            if first:
                return hub, connection
            await hub.serve()
        await connection.close()
        return hub, connection

    async def lived():
        hub, connection = await serve(first=True)
        work = asyncio.gather(*(live(nats_server.url, hub, k, 30) for k in range(CLIENTS)))
        with pytest.raises(Died):
            await hub.serve()
        await connection.close()
        after, _ = await serve()
        await work
        return after.aggregator.model

    is_the_simulation(asyncio.run(lived()), tmp_path)


@pytest.mark.parametrize(
    "point", ["hub before store", pytest.param("hub after store", marks=pytest.mark.slow)]
)
def test_a_server_that_is_killed_at_a_write_point_loses_nothing(point, tmp_path, monkeypatch):
    """SIGKILL, and the same server again on its data: hub and clients wait for it and go on."""
    server = Server(tmp_path / "server", "one", *ports(1), STORED)
    monkeypatch.setattr(faults, "reach", at_the_fifth(point, server.kill))

    async def started_again():
        while server.process.poll() is None:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(server.start)

    async def lived():
        again = asyncio.create_task(started_again())
        async with serving(server.url, lockstep(), folder=tmp_path) as (hub, served):
            await asyncio.gather(*(live(server.url, hub, k, 60) for k in range(CLIENTS)))
            await served
            await again
            return hub.aggregator.model

    try:
        is_the_simulation(asyncio.run(lived()), tmp_path)
    finally:
        server.kill()


def test_nothing_is_broadcast_that_is_not_stored(nats_server, monkeypatch):
    """With a slow store: when a broadcast is received, the state that produced it is already stored."""
    write = StateStore.write

    async def slowly(self, data):
        await asyncio.sleep(0.05)
        return await write(self, data)

    monkeypatch.setattr(StateStore, "write", slowly)

    async def lived():
        content = run_content(FEDOGD, LINEAR, gather=1)
        async with serving(nats_server.url, content) as (hub, _):
            raw = await connections.connect(nats_server.url)
            received = []

            async def listen(message):
                sent = hub.aggregator.version
                data = await hub._store.read()
                received.append((sent, unpack(data.data, "state").values["version"]))

            await raw.subscribe(hub.subjects.broadcast("*"), cb=listen)
            for step in (1, 2, 3):
                given = {"step": step, "version": step - 1, "epoch": hub.aggregator.epoch}
                await raw.publish(hub.subjects.upload("0"), upload(hub.document, **given))
                await until(lambda step=step: len(received) == step)
            await raw.close()
            return received

    assert asyncio.run(lived()) == [(1, 1), (2, 2), (3, 3)]


def aggregator(**rules):
    return Aggregator(parse(run_content(FEDOGD, LINEAR, **rules)))


def refusal(made, client, data):
    with pytest.raises(Refused) as caught:
        made.accept(client, data, 1)
    return caught.value.reason


def test_replays_of_every_kind_are_refused():
    """Of what waits, of the newest merged step, of an older one; before and after a restart."""
    made = aggregator(gather=1)
    first, second = (upload(made.document, step=step, version=step - 1) for step in (1, 2))
    made.accept("0", first, 1)
    assert refusal(made, "0", first) == Reason.REPLAYED  # it waits
    made.merge()
    assert refusal(made, "0", first) == Reason.REPLAYED  # it is the newest that is in
    made.accept("0", second, 2)
    made.merge()
    model = made.model.copy()
    for again in (first, second):
        assert refusal(made, "0", again) == Reason.REPLAYED
    later = aggregator(gather=1)
    later.document = later.document._replace(
        digest=made.document.digest
    )  # another name, the same run
    later.restore(unpack(made.snapshot(3), "state"), later.document)
    for again in (first, second):
        assert refusal(later, "0", again) == Reason.REPLAYED
    assert refusal(later, "1", second) == Reason.CLIENT  # nor as somebody else
    assert np.array_equal(later.model, model)
    assert later.records.merged.tolist() == [2, 0]
    assert later.records.refused[0][Reason.REPLAYED] == 6


def test_who_is_merged_how_far_never_falls_back():
    """At the free pace an older upload may come after a newer one."""
    made = aggregator(gather=1)
    made.accept("0", upload(made.document, step=4), 1)
    made.accept("1", upload(made.document, client=1, step=2), 2)
    made.merge()
    assert made.broadcast().merged.tolist() == [4, 2]
    made.accept("1", upload(made.document, client=1, step=3, version=1), 3)
    made.merge()
    assert made.broadcast().merged.tolist() == [4, 3]
    made.accept("1", upload(made.document, client=1, step=5, version=2, weight=0.0, body=None), 4)
    made.merge()  # it was not sampled: nothing of its step 5 is in
    assert made.broadcast().merged.tolist() == [4, 3]


def test_a_message_in_pieces_survives_a_hub(nats_server):
    """Half of it came before the hub died. The next one begins an epoch, in which all of it is sent again."""

    async def lived():
        content = run_content(FEDOGD, LINEAR, gather=1)
        document = parse(content)
        raw = await connections.connect(nats_server.url)
        connection = await connections.connect(nats_server.url)
        hub = Hub(document, connection)
        await hub.open()
        epoch = hub.aggregator.epoch
        pieces = split(upload(document, client=0, epoch=epoch), 40, 7)
        assert len(pieces) > 2
        work = asyncio.create_task(hub.serve())
        js = raw.jetstream()
        await js.publish(hub.subjects.upload("0"), pieces[0])
        await js.publish(hub.subjects.upload("1"), upload(document, client=1, epoch=epoch))
        await until(lambda: hub.aggregator.version == 1)  # merged and stored past the first piece
        await asyncio.sleep(0.05)
        hub.stop()
        await work
        await connection.close()
        async with serving(nats_server.url, content) as (later, _):
            assert later.aggregator.records.merged.tolist() == [0, 1]
            assert later.aggregator.epoch > epoch
            await js.publish(hub.subjects.upload("0"), pieces[1])
            await until(lambda: later.aggregator.records.refused[0].total())
            assert later.aggregator.records.refused[0] == {Reason.CHUNK: 1}
            assert later.aggregator.records.strikes[0] == 0  # it is not the client's fault
            for piece in split(upload(document, client=0, epoch=later.aggregator.epoch), 40, 7):
                await js.publish(hub.subjects.upload("0"), piece)
            await until(lambda: later.aggregator.records.merged.tolist() == [1, 1])
        await raw.close()

    asyncio.run(lived())


def test_nothing_is_lost_at_the_free_pace_with_a_period(nats_server):
    """Models come while a client is between two syncs; what it has learnt is still sent."""
    x, y = np.array([1.0, 0.0], np.float32), np.float32(1.0)
    constant = {"name": "linear", "features": 2, "intercept": False}
    algorithm = {"name": "ofediq", "step": 0.01, "period": 3}

    async def lived():
        content = run_content(algorithm, constant, gather=1)
        async with (
            serving(nats_server.url, content) as (hub, _),
            await joined(nats_server.url, hub, "0") as one,
            await joined(nats_server.url, hub, "1") as two,
        ):
            sums = []
            accept = hub.aggregator.accept

            def accepted(client, data, *given):
                found = accept(client, data, *given)
                waiting = hub.aggregator.waiting[hub.aggregator.indices[client], found.step]
                sums.append((client, waiting.body.copy()))
                return found

            hub.aggregator.accept = accepted
            await two.learn_one(x, y)  # one gradient of the three
            for _ in range(3):  # meanwhile the other syncs, and a new model comes
                await one.learn_one(x, y)
            await until(lambda: hub.aggregator.version == 1)
            await until(
                lambda: (
                    two.session.uplink.latest is not None and two.session.uplink.latest.version == 1
                )
            )
            assert np.asarray(two.predict_one(x)) != 0  # it decides with the new model
            for _ in range(2):
                await two.learn_one(x, y)
            await until(lambda: hub.aggregator.records.merged.tolist() == [3, 3])
            return dict(sums)

    sent = asyncio.run(lived())
    # three gradients of (w x - 1) x: the first at w = 0, the others at models near it
    assert -3.0 <= sent["0"][0] < -2.9
    assert -3.0 <= sent["1"][0] < -2.8


def test_lockstep_takes_no_upload_twice_when_it_is_asked_for_again(nats_server):
    """A client that the heartbeat names as missing sends again; the second copy is refused, harmlessly."""

    async def lived():
        content = run_content(FEDOGD, LINEAR, pace="lockstep", steps=2)
        async with serving(nats_server.url, content) as (hub, _):
            raw = await connections.connect(nats_server.url)
            twice = upload(hub.document, epoch=hub.aggregator.epoch)
            await raw.publish(hub.subjects.upload("0"), twice)
            await raw.publish(hub.subjects.upload("0"), twice)
            await until(lambda: hub.aggregator.records.refused[0].total() == 1)
            async with await joined(nats_server.url, hub, "1") as other:
                stepping = asyncio.create_task(other.step_with(Sample(np.ones(2, np.float32), 1.0)))
                await until(lambda: hub.aggregator.version == 1)
                await stepping
            await raw.close()
            return hub.aggregator

    found = asyncio.run(lived())
    assert found.records.merged.tolist() == [1, 1]
    assert found.records.refused[0] == {Reason.REPLAYED: 1}
    assert found.records.strikes[0] == 0
