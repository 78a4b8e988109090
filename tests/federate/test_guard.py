"""One site with a wrong unit over NATS: the others' model is as without it, and everybody can see why."""

import asyncio
import logging

import numpy as np
import pytest

from mainstem.engines.federate.hub.guard_report import BACK, OFTEN, GuardReport
from mainstem.engines.federate.protocol.messages import Upload, client_id, pack_upload
from tests.federate.in_process import joined, run_content, serving, until

FEDOGD = {"name": "fedogd", "step": 0.1}
LINEAR = {"name": "linear", "features": 3, "intercept": False}
TRUTH = np.array([1.0, -2.0, 0.5])
STEPS = 60


def samples(k, scale=1.0):
    """Samples of client k, with features that are `scale` times too large."""
    rng = np.random.default_rng(k)
    for _ in range(STEPS):
        x = rng.normal(size=3)
        yield (scale * x).astype(np.float32), np.float32(x @ TRUTH + 0.1 * rng.normal())


async def learns(url, hub, k, scale=1.0):
    """Client k through all its samples; its mean loss in the second half."""
    losses = []
    async with await joined(url, hub, str(k)) as learner:
        for x, y in samples(k, scale):
            losses.append((float(learner.predict_one(x)) - float(y)) ** 2)
            await learner.learn_one(x, y)
    return np.mean(losses[STEPS // 2 :])


def lived(url, scales, algorithm=FEDOGD):
    """The honest clients' mean loss in the second half, and the hub's last status."""

    async def go():
        content = run_content(algorithm, LINEAR, clients=len(scales), pace="lockstep")
        async with serving(url, content) as (hub, _):
            losses = await asyncio.gather(
                *(learns(url, hub, k, scale) for k, scale in enumerate(scales))
            )
            hub._check_health()  # as once a second
            return np.mean(losses[:3]), hub.status()

    return asyncio.run(go())


@pytest.mark.parametrize("scale", [50.0, 1e12])
def test_a_wrong_unit_is_left_out_and_seen(scale, nats_server, caplog):
    alone, _ = lived(nats_server.url, [1.0, 1.0, 1.0])
    with caplog.at_level(logging.WARNING, "mainstem"):
        honest, status = lived(nats_server.url, [1.0, 1.0, 1.0, scale])
    assert honest < 1.5 * alone
    assert status["clients"]["3"]["held"] > STEPS / 2
    assert [status["clients"][str(k)]["held"] for k in range(3)] == [0, 0, 0]
    assert "client 3: is left out" in caplog.text
    alarms = [(each["alarm"], each["client"]) for each in status["alarms"]]
    assert alarms == [("client_left_out", "3")]


def test_a_client_at_the_limit_does_not_come_and_go():
    """One that is left out every other time is shown as left out until it has been taken for a while."""
    clients, counts = ("a", "b"), np.zeros((2, 2), np.int32)
    report = GuardReport(counts)
    for n in range(200):
        counts = counts + np.array([[0, 0], [0, n % 2]])
        found = report.update(clients, counts, [("a", n, 0), ("b", n, 0)])
        assert found == {"clipped": [], "held": ["b"] * (n % 2)}
        assert report.left_out == ({"b"} if n > 2 * OFTEN - 2 else set())
    for n in range(BACK):
        report.update(clients, counts, [("a", n, 0)] + [("b", n, 0)] * (n < BACK - 1))
    assert report.left_out == {"b"}
    report.update(clients, counts, [("b", BACK, 0)])
    assert not report.left_out


def test_with_error_feedback_it_counts_too(nats_server):
    top = {"name": "error_feedback", "codec": {"name": "top_k", "count": 2}}
    _, status = lived(nats_server.url, [1.0, 1.0, 1.0, 50.0], FEDOGD | {"codec": top})
    assert status["clients"]["3"]["held"] > STEPS / 2


def test_its_memory_is_stored_with_the_state(nats_server):
    async def go():
        content = run_content(FEDOGD, LINEAR, clients=4, pace="lockstep")
        async with serving(nats_server.url, content) as (hub, _):
            work = [learns(nats_server.url, hub, k, 50.0 if k == 3 else 1.0) for k in range(4)]
            await asyncio.gather(*work)
            await until(lambda: hub.aggregator.step == STEPS)
        async with serving(nats_server.url, content) as (again, _):
            return hub, again

    hub, again = asyncio.run(go())
    assert again.status()["clients"]["3"]["held"] > STEPS / 2
    assert np.array_equal(again.aggregator.server.memory.usual, hub.aggregator.server.memory.usual)


@pytest.mark.parametrize(("guard", "weight"), [(False, 1.0), (True, 1e9)])
def test_a_fast_liar_has_one_vote_under_the_median(guard, weight, nats_server):
    """Four clients send a gradient of 0, the fifth eight of -1: the median of the clients is 0."""

    async def go():
        algorithm = FEDOGD | {"collect": {"name": "median"}}
        content = run_content(algorithm, LINEAR, clients=5, pace="free", guard=guard)
        async with serving(nats_server.url, content) as (hub, _):
            document, epoch = hub.document, hub.aggregator.epoch

            async def send(k, step, value, weight):
                body = np.full(document.message, value, document.dtype).tobytes()
                ours = (
                    document.digest,
                    document.codec,
                    client_id(document.clients[k]),
                    step,
                    0,
                    0.0,
                    weight,
                )
                data = pack_upload(Upload(*ours, body, epoch))
                await hub._connection.publish(hub.subjects.upload(str(k)), data)

            for step in range(1, 9):
                await send(4, step, -1.0, weight)
            for k in range(4):
                await send(k, 1, 0.0, 1.0)
            if weight > 1:  # all were refused: one that is honest completes the round
                await send(4, 9, 0.0, 1.0)
            await until(lambda: hub.aggregator.version == 1)
            return hub.aggregator.model, hub.status()["clients"]["4"]

    model, liar = asyncio.run(go())
    assert np.array_equal(model, np.zeros(3))
    assert liar["merged"] == (9 if weight > 1 else 8)
    assert liar["refused"] == ({"wrong weight": 8} if weight > 1 else {})
