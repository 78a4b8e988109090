"""A fixed model to compare with: its losses are those of a plain loop, and regret is at least the difference."""

import asyncio

import numpy as np
import pytest

from mainstem.engines.federate.client import uplink as link
from mainstem.engines.federate.control import send_order
from mainstem.engines.federate.protocol.comparisons import CandidateLosses, with_candidate
from mainstem.engines.federate.protocol.heartbeats import read_client
from mainstem.errors import MainstemError
from tests.federate.in_process import joined, run_content, serving, until

LINEAR = {"name": "linear", "features": 2, "intercept": False}
FEDOGD = {"name": "fedogd", "step": 0.1}


@pytest.mark.parametrize("at_once", [False, True])
def test_the_loss_of_a_candidate_is_that_of_a_plain_loop(at_once, nats_server, monkeypatch):
    monkeypatch.setattr(link, "HEARTBEAT", 1)
    draw = np.random.default_rng(0)
    xs = draw.normal(size=(40, 2))
    ys = xs @ [1.0, -2.0] + 0.1 * draw.normal(size=40)

    async def lived():
        content = run_content(FEDOGD, LINEAR, clients=1, gather=1, dtype="float64")
        async with (
            serving(nats_server.url, content) as (hub, _),
            await joined(nats_server.url, hub, "0") as learner,
        ):
            run = hub.document.rules.run
            for n in range(10):
                await learner.learn_one(xs[n], ys[n])
                await until(lambda: hub.aggregator.records.merged[0] == learner.step)
            await send_order(nats_server.url, run, "candidate")
            model, before = hub.aggregator.model.copy(), learner.loss
            await until(lambda: learner.session.uplink.candidate is not None)
            if at_once:
                await learner.learn_many(xs[10:], ys[10:])
            else:
                for n in range(10, 40):
                    await learner.learn_one(xs[n], ys[n])
            await until(lambda: (hub.status()["candidate"] or {}).get("samples") == 30)
            return model, learner.loss - before, hub.status()["candidate"]

    model, own, found = asyncio.run(lived())
    plain = np.sum((xs[10:] @ model - ys[10:]) ** 2) / 2
    assert found["version"] == 10
    assert np.isclose(found["candidate"], plain, rtol=1e-10)
    assert np.isclose(found["loss"], own, rtol=1e-10)
    assert np.isclose(found["regret_at_least"], own - plain, rtol=1e-8)


def test_a_shared_part_alone_is_no_candidate(nats_server):
    async def lived():
        content = run_content(
            {"name": "fedres_sgd", "step": 0.1}, {"name": "personal", "shared": 2, "own": 2}
        )
        async with serving(nats_server.url, content) as (hub, _):
            with pytest.raises(MainstemError, match="whole model"):
                await send_order(nats_server.url, hub.document.rules.run, "candidate")
            with pytest.raises(MainstemError, match="there is no order 'dance'"):
                await send_order(nats_server.url, hub.document.rules.run, "dance")

    asyncio.run(lived())


def claimed(version=1, samples=1, loss="1.0", candidate="1.0"):
    """A heartbeat with a comparison, as JSON text."""
    found = f'"version": {version}, "samples": {samples}, "loss": {loss}, "candidate": {candidate}'
    return f'{{"epoch": 1, "version": 1, "step": 0, "compared": {{{found}}}}}'.encode()


def test_claims_add_up_to_a_number():
    read = read_client(claimed(loss="-1e100", candidate="1e100")).compared
    assert np.isfinite(with_candidate([read] * 1000)["regret_at_least"])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"1",
        b"{}",
        b'{"version": 1}',
        b"\xff",
        b"[1, 2, 3, 4]",
        claimed(loss="1e308"),
        claimed(candidate="-1e101"),
        claimed(loss="NaN"),
        claimed(loss="Infinity"),
        claimed(loss="1" + "0" * 400),
        claimed(samples="1" + "0" * 400),
        claimed(samples=-1),
        claimed(samples=1.5),
        claimed(version=-1),
        claimed(version="true"),
        claimed(loss="null"),
        b"[" * 1000,
        b"[" * 100_000,
        b'{"epoch": 1, "version": -1, "step": 0}',
        b'{"epoch": 1e3, "version": 1, "step": 0}',
        b'{"epoch": 9223372036854775807, "version": 1, "step": 0}',
        b'{"epoch": 1, "version": 1, "step": 2147483648}',
        b'{"epoch": 1, "version": 1, "step": 0, "compared": [1, 2, 3, 4]}',
    ],
    ids=lambda data: data[:60],
)
def test_nonsense_is_not_believed(data):
    with pytest.raises((ValueError, TypeError)):
        read_client(data)


def test_only_the_newest_candidate_counts():
    each = (3, 10, 5.0, 4.0), (4, 2, 1.5, 1.0), (4, 3, 1.0, 2.0)
    found = with_candidate([CandidateLosses(*of_one) for of_one in each])
    assert found == {
        "version": 4,
        "samples": 5,
        "loss": 2.5,
        "candidate": 3.0,
        "regret_at_least": -0.5,
    }
    assert with_candidate([]) is None
