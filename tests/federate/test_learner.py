"""A client as people use it: dicts or arrays, labels late or at once, at its own pace."""

import asyncio

import numpy as np
import pytest

import mainstem as ms
from mainstem.base import Sample
from mainstem.engines.federate.client import uplink as links
from mainstem.engines.federate.client.kernels import Kernels
from mainstem.engines.federate.client.state import ClientState, learn_together
from mainstem.engines.federate.protocol.messages import Broadcast
from mainstem.engines.federate.protocol.run_document import parse
from mainstem.errors import BadData, MainstemError
from tests.federate.in_process import joined, run_content, serving, until

LOGISTIC = {"name": "logistic", "features": 2}
LINEAR = {"name": "linear", "features": 2, "intercept": False}
FEDOGD = {"name": "fedogd", "step": 0.3}


def rows(count, seed=0):
    """Labels that are 1 where a + 2 b > 0."""
    draw = np.random.default_rng(seed)
    for a, b in draw.normal(size=(count, 2)):
        yield {"a": float(a), "b": float(b)}, bool(a + 2 * b > 0)


def test_two_clients_learn_one_model_at_their_own_pace(nats_server):
    async def lived():
        content = run_content(FEDOGD, LOGISTIC, gather=1)
        async with serving(nats_server.url, content) as (hub, _):
            right = []
            async with (
                await joined(nats_server.url, hub, "0") as one,
                await joined(nats_server.url, hub, "1") as two,
            ):
                for n, (x, y) in enumerate(rows(300)):
                    who = (one, two)[n % 2]
                    right.append(who.predict_one(x) == y)
                    await who.learn_one(x, y)
                    await asyncio.sleep(0)
            await until(lambda: hub.aggregator.records.merged.tolist() == [150, 150])
            return np.mean(right[-100:]), hub.aggregator.version

    right, version = asyncio.run(lived())
    assert right > 0.9
    assert version > 10


def test_what_was_not_sent_for_want_of_room_is_sent_in_the_end(nats_server):
    async def lived():
        async with serving(
            nats_server.url, run_content(FEDOGD, LOGISTIC, clients=1, pending=1, gather=1)
        ) as (hub, _):
            async with await joined(nats_server.url, hub, "0") as learner:
                for x, y in rows(100):  # faster than any round trip
                    await learner.learn_one(x, y)
                skipped = learner.skipped
            await until(lambda: hub.aggregator.records.merged[0] == 100)
            return skipped, hub.aggregator.version

    skipped, version = asyncio.run(lived())
    assert skipped > 0
    assert version <= 100 - skipped + 1


def test_samples_may_be_dicts_arrays_or_many_at_once(nats_server):
    async def lived():
        rules = {"clients": 4, "gather": 4, "pending": 1000}  # the fourth never comes
        async with serving(nats_server.url, run_content(FEDOGD, LOGISTIC, **rules)) as (hub, _):
            each = list(rows(40))
            found = []
            for k in range(3):
                async with await joined(nats_server.url, hub, str(k)) as learner:
                    if k == 0:
                        for x, y in each:
                            await learner.learn_one(x, y)
                    elif k == 1:
                        for x, y in each:
                            await learner.learn_one([x["a"], x["b"]], int(y))
                    else:
                        xs = np.array([[x["a"], x["b"]] for x, _ in each])
                        await learner.learn_many(xs, np.array([y for _, y in each]))
                    found.append((learner.loss, learner.metrics["correct"]))
            return found

    first, *others = asyncio.run(lived())
    for other in others:
        assert np.allclose(first, other, rtol=1e-5)


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        ({"a": 1.0}, True, "missing: b; unknown: none"),
        ({"a": 1.0, "b": 2.0, "c": 3.0}, True, "missing: none; unknown: c"),
        ([1.0, 2.0, 3.0], True, "shape"),
        ([1.0, float("nan")], True, "finite"),
        (["one", "two"], True, "numbers"),
        ([1.0, 2.0], 2, "from 0 to 1"),
        ([1.0, 2.0], "yes", "from 0 to 1"),
        ([1.0, 2.0], 0.5, "from 0 to 1"),
    ],
)
def test_what_cannot_be_learnt_is_refused_and_loses_nothing(x, y, expected, nats_server):
    async def lived():
        async with (
            serving(nats_server.url, run_content(FEDOGD, LOGISTIC)) as (hub, _),
            await joined(nats_server.url, hub, "0") as learner,
        ):
            await learner.learn_one({"a": 1.0, "b": 1.0}, True)
            with pytest.raises(BadData, match=expected):
                await learner.learn_one(x, y)
            assert learner.step == 1

    asyncio.run(lived())


def test_labels_have_names(nats_server):
    async def lived():
        content = run_content(FEDOGD, LOGISTIC, labels=["no", "yes"])
        async with (
            serving(nats_server.url, content) as (hub, _),
            await joined(nats_server.url, hub, "0") as learner,
        ):
            for x, y in rows(20):
                await learner.learn_one(x, "yes" if y else "no")
            chances = learner.predict_proba_one({"a": 3.0, "b": 3.0})
            assert set(chances) == {"no", "yes"}
            assert np.isclose(sum(chances.values()), 1)
            with pytest.raises(BadData, match="one of 'no', 'yes'"):
                await learner.learn_one({"a": 1.0, "b": 1.0}, "maybe")

    asyncio.run(lived())


def test_a_late_label_is_charged_to_the_model_that_predicted():
    document = parse(run_content(FEDOGD, LINEAR, clients=1))
    client_state = ClientState(Kernels(document), 0)
    first, second = np.array([1.0, 0.0], np.float32), np.array([0.0, 1.0], np.float32)
    then = client_state.model_of(client_state.client)
    model = np.array([5.0, 5.0], np.float32).tobytes()
    client_state.receive(Broadcast(document.digest, 1, 1, *np.zeros((2, 1), np.int64), model))
    client_state.learn_late(Sample(first, np.float32(1.0)), then)  # predicted 0: slope (0 - 1) x
    assert client_state.client.unsent.tolist() == [-1.0, 0.0]
    assert client_state.totals().loss == 0.5
    learn_together(
        [client_state], [Sample(second, np.float32(1.0))], uploads=False
    )  # predicts 5: slope (5 - 1) x
    assert client_state.client.unsent.tolist() == [-1.0, 4.0]
    assert client_state.totals().loss == 0.5 + 8.0


def test_labels_may_come_late_and_in_another_order(nats_server):
    async def lived():
        async with (
            serving(nats_server.url, run_content(FEDOGD, LINEAR, clients=1, gather=1)) as (hub, _),
            await joined(nats_server.url, hub, "0") as learner,
        ):
            asked = [np.array([1.0, n]) for n in range(3)]
            for x in asked:
                assert learner.predict_one(x) == 0.0
            for x in reversed(asked):  # each is charged to the first model, which predicts 0
                await learner.learn_one(x, 1.0)
                await until(lambda: hub.aggregator.records.merged[0] == learner.step)
            assert learner.step == 3
            assert np.isclose(learner.loss, 1.5)

    asyncio.run(lived())


def test_labels_that_come_at_once_are_each_charged_to_the_model_that_answered(nats_server):
    async def lived():
        content = run_content({"name": "fedsea", "step": 0.1, "period": 1000}, LINEAR, clients=1)
        async with (
            serving(nats_server.url, content) as (hub, _),
            await joined(nats_server.url, hub, "0") as learner,
        ):
            asked = [np.array([1.0, n]) for n in range(3)]
            assert [learner.predict_one(x) for x in asked] == [0.0] * 3
            await asyncio.gather(*(learner.learn_one(x, 1.0) for x in asked))
            assert learner.step == 3
            assert np.isclose(learner.loss, 1.5)

    asyncio.run(lived())


def test_who_is_not_on_the_roster_is_refused(nats_server):
    async def lived():
        async with serving(nats_server.url, run_content(FEDOGD, LOGISTIC)) as (hub, _):
            with pytest.raises(MainstemError, match="no client 'nobody': one of 0, 1"):
                await joined(nats_server.url, hub, "nobody")
        with pytest.raises(MainstemError, match="there is no such run"):
            await ms.join_async(nats_server.url, run="nothing", client="0")

    asyncio.run(lived())


def test_a_patient_client_skips_nothing(nats_server):
    async def lived():
        content = run_content(FEDOGD, LOGISTIC, clients=1, pending=1, gather=1)
        async with (
            serving(nats_server.url, content) as (hub, _),
            await joined(nats_server.url, hub, "0", patient=True) as learner,
        ):
            for x, y in rows(100):
                await learner.learn_one(x, y)
            return learner.skipped, hub.aggregator.version

    assert asyncio.run(lived()) == (0, 100)


@pytest.mark.slow
def test_a_loop_that_only_learns_leaves_the_network_its_turn(nats_server):
    async def lived():
        content = run_content(FEDOGD, LOGISTIC, clients=1, gather=1)
        async with (
            serving(nats_server.url, content) as (hub, _),
            await joined(nats_server.url, hub, "0") as learner,
        ):
            for x, y in rows(3000):
                await learner.learn_one(x, y)
            return (
                learner.sent_bytes,
                hub.aggregator.version,
                learner.session.state.progress.version,
            )

    assert min(asyncio.run(lived())) > 10


def test_a_client_in_a_hurry_sends_all_that_it_has_room_for(nats_server):
    async def lived(k):
        with ms.join(nats_server.url, run=run, client=str(k)) as learner:
            for x, y in rows(300):
                learner.learn_one(x, y)
            return learner.step, learner.skipped

    content = run_content(FEDOGD, LOGISTIC, clients=1, gather=1, pending=1000)
    run = content["federate"]["run"]

    async def both():
        async with serving(nats_server.url, content) as (hub, _):
            found = await asyncio.to_thread(asyncio.run, lived(0))
            await until(lambda: hub.aggregator.records.merged[0] == 300)
            return found, hub.aggregator.records.bytes_up[0] / hub.document.upload_bytes

    assert asyncio.run(both()) == ((300, 0), 300)


def test_uploads_arrive_in_the_order_in_which_they_were_made(nats_server, monkeypatch):
    monkeypatch.setattr(links, "RETRY", 0.1)

    async def lived():
        content = run_content(FEDOGD, LOGISTIC, clients=1, gather=1, pending=100)
        async with (
            serving(nats_server.url, content) as (hub, _),
            await joined(nats_server.url, hub, "0") as learner,
        ):
            publish, fails = (
                learner.session.uplink._js.publish,
                iter([True] + [False] * 5 + [True] * 3),
            )

            async def unreliable(subject, data):
                if next(fails, False):
                    raise TimeoutError
                await publish(subject, data)

            learner.session.uplink._js.publish = unreliable
            for x, y in rows(50):
                await learner.learn_one(x, y)
            await until(lambda: hub.aggregator.records.merged[0] == 50)
            return hub.aggregator.records.bytes_up[
                0
            ] / hub.document.upload_bytes, hub.aggregator.records.refused[0]

    assert asyncio.run(lived()) == (50, {})
