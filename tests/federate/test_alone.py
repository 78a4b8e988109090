"""A model that a client learns alone, beside that of the run: its losses are those of a plain loop."""

import asyncio
import contextlib

import numpy as np
import pytest

import mainstem as ms
from mainstem import parts, replay
from mainstem.engines.federate.client import uplink as link
from mainstem.engines.federate.control import send_order
from mainstem.engines.federate.protocol.comparisons import AloneLosses, with_alone
from mainstem.engines.federate.protocol.heartbeats import (
    ClientHeartbeat,
    Position,
    pack_client,
    read_client,
)
from mainstem.errors import BadParameter, NotFinite
from tests.federate.in_process import joined, run_content, serving, until

LINEAR = {"name": "linear", "features": 2, "intercept": False}
FEDOGD = {"name": "fedogd", "step": 0.1}


def drawn(count, seed=0):
    """Samples of a linear model."""
    draw = np.random.default_rng(seed)
    xs = draw.normal(size=(count, 2))
    return xs, xs @ [1.0, -2.0] + 0.1 * draw.normal(size=count)


def plain_loop(xs, ys, step):
    """The losses of online gradient descent."""
    model, losses = np.zeros(2), []
    for x, y in zip(xs, ys, strict=True):
        error = x @ model - y
        losses.append(error**2 / 2)
        model = model - step * error * x
    return np.array(losses)


@pytest.mark.parametrize("at_once", [False, True])
def test_the_loss_alone_is_that_of_a_plain_loop(at_once, nats_server, monkeypatch):
    monkeypatch.setattr(link, "HEARTBEAT", 1)
    xs, ys = drawn(40)

    async def lived():
        content = run_content(FEDOGD, LINEAR, clients=2, gather=1, quorum=1, dtype="float64")
        async with (
            serving(nats_server.url, content) as (hub, _),
            await joined(nats_server.url, hub, "0", alone=0.3) as learner,
            await joined(nats_server.url, hub, "1") as other,
        ):
            await other.learn_one(xs[0], ys[0])  # moves the model of the run, and nothing else
            if at_once:
                await learner.learn_many(xs, ys)
            else:
                for x, y in zip(xs, ys, strict=True):
                    await learner.learn_one(x, y)
            await until(lambda: (hub.status()["alone"] or {}).get("samples") == 40)
            return learner.loss, learner.gain, hub.status()

    own, gain, status = asyncio.run(lived())
    alone = plain_loop(xs, ys, 0.3).sum()
    assert np.isclose(status["alone"]["alone"], alone, rtol=1e-10)
    assert np.isclose(status["alone"]["loss"], own, rtol=1e-10)
    assert status["alone"]["clients"] == 1
    assert np.isclose(gain, (alone - own) / 40, rtol=1e-8)
    assert status["clients"]["0"]["alone"] == {
        **{name: status["alone"][name] for name in ("samples", "loss", "alone")},
        "gain": gain,
    }
    assert status["clients"]["1"]["alone"] is None


def test_a_run_with_one_client_gains_nothing(nats_server):
    """FedOGD of one client in lockstep is what it learns alone."""
    xs, ys = drawn(20)

    async def lived():
        content = run_content(FEDOGD, LINEAR, clients=1, pace="lockstep", dtype="float64")
        async with (
            serving(nats_server.url, content) as (hub, _),
            await joined(nats_server.url, hub, "0", alone=0.1) as learner,
        ):
            for x, y in zip(xs, ys, strict=True):
                await learner.learn_one(x, y)
            return learner.gain

    assert abs(asyncio.run(lived())) < 1e-12


def test_it_is_learnt_in_the_geometry_of_the_run(nats_server):
    """On the simplex its models stay there: mixtures, whose losses a plain loop of exponentiated gradients has."""
    xs, ys = drawn(30)
    ys = xs @ [0.3, 0.7]
    fedomd = {"name": "fedomd", "step": 0.5, "mirror": {"name": "entropy"}}

    async def lived():
        content = run_content(fedomd, LINEAR, clients=1, gather=1, dtype="float64")
        async with (
            serving(nats_server.url, content) as (hub, _),
            await joined(nats_server.url, hub, "0", alone=0.5) as learner,
        ):
            for x, y in zip(xs, ys, strict=True):
                await learner.learn_one(x, y)
            return learner.session.state.alone.compared().alone

    model, sum_of_losses = np.full(2, 0.5), 0.0
    for x, y in zip(xs, ys, strict=True):
        error = x @ model - y
        sum_of_losses += error**2 / 2
        model = model * np.exp(-0.5 * error * x)
        model = model / model.sum()
    assert np.isclose(asyncio.run(lived()), sum_of_losses, rtol=1e-10)


def test_all_alone_are_the_simulation_of_independent_clients(nats_server):
    """Of a problem with own parts too: alone, a client learns both parts."""
    problem, stream = ms.problems.personal(shared=2, own=2), ms.streams.residuals(2, 2, 2)
    steps = 30
    plain = ms.simulate(ms.independent(0.05), problem, stream, steps=steps, dtype="float64")

    async def lived():
        personal = {"name": "personal", "shared": 2, "own": 2}
        content = run_content(
            {"name": "fedres_sgd", "step": 0.1},
            personal,
            clients=2,
            pace="lockstep",
            dtype="float64",
        )
        async with serving(nats_server.url, content) as (hub, _):
            learners = [await joined(nats_server.url, hub, k, alone=0.05) for k in "01"]
            each = [replay.samples_at(stream, 0, k, 1, steps, "float64") for k in range(2)]
            for samples in zip(*each, strict=True):
                both = zip(learners, samples, strict=True)
                await asyncio.gather(*(learner.step_with(sample) for learner, sample in both))
            found = [learner.session.state.alone.compared().alone for learner in learners]
            for learner in learners:
                await learner.close()
            return found

    assert np.isclose(sum(asyncio.run(lived())), 2 * plain.loss.sum(), rtol=1e-9)


def test_it_survives_in_the_folder_of_its_client(nats_server, tmp_path):
    xs, ys = drawn(40)

    async def lived():
        content = run_content(FEDOGD, LINEAR, clients=1, gather=1, dtype="float64")
        async with serving(nats_server.url, content) as (hub, _):
            found = []
            for part, step in ((slice(0, 25), 0.3), (slice(25, 40), 0.3), (slice(0, 5), 0.2)):
                given = {"folder": tmp_path, "alone": step}
                async with await joined(nats_server.url, hub, "0", **given) as learner:
                    await learner.learn_many(xs[part], ys[part])
                    found.append(learner.session.state.alone.compared())
            return found

    first, second, another = asyncio.run(lived())
    losses = plain_loop(xs, ys, 0.3)
    assert np.isclose(first.alone, losses[:25].sum(), rtol=1e-10)
    assert np.isclose(second.alone, losses.sum(), rtol=1e-10)
    assert second.samples == 40
    assert another.samples == 5  # of another step size: it begins anew
    assert np.isclose(another.alone, plain_loop(xs[:5], ys[:5], 0.2).sum(), rtol=1e-10)


def test_a_step_that_is_too_large_is_logged_and_harms_nothing(nats_server, caplog):
    xs, ys = drawn(400)

    async def lived():
        content = run_content(FEDOGD, LINEAR, clients=1, gather=1)
        async with (
            serving(nats_server.url, content) as (hub, _),
            await joined(nats_server.url, hub, "0", alone=100.0) as learner,
        ):
            for x, y in zip(xs, ys, strict=True):
                await learner.learn_one(x, y)
            compared, own = learner.session.state.alone.compared(), learner.mean_loss
            assert read_client(pack_client(ClientHeartbeat(Position(1, 1, 0), alone=compared), {}))
            return learner.gain, own

    gain, own = asyncio.run(lived())
    assert gain > 1
    assert own < 1
    logged = [record for record in caplog.records if "alone is not finite" in record.getMessage()]
    assert len(logged) == 1


def test_a_sample_that_is_not_finite_for_one_side_counts_for_none(nats_server, monkeypatch):
    """For a candidate too: the hub would refuse a heartbeat with such a sum."""
    monkeypatch.setattr(link, "HEARTBEAT", 1)
    xs, ys = drawn(30)
    xs[10] = 1e30  # its square is no float32

    async def lived():
        content = run_content(FEDOGD, LINEAR, clients=1, gather=1)
        async with (
            serving(nats_server.url, content) as (hub, _),
            await joined(nats_server.url, hub, "0", alone=0.1) as learner,
        ):
            await learner.learn_one(xs[0], ys[0])
            await until(lambda: hub.aggregator.version == 1)
            await send_order(nats_server.url, hub.document.rules.run, "candidate")
            await until(lambda: learner.session.uplink.candidate is not None)
            for x, y in zip(xs[1:], ys[1:], strict=True):
                with contextlib.suppress(NotFinite):
                    await learner.learn_one(x, y)
            await until(lambda: (hub.status()["alone"] or {}).get("samples") == 29)
            return hub.status()

    status = asyncio.run(lived())
    assert status["candidate"]["samples"] == 28
    for found in (status["alone"], status["candidate"]):
        assert np.isfinite(list(found.values())).all()


def test_what_came_after_the_last_sync_counts_in_the_end(nats_server, tmp_path):
    xs, ys = drawn(30)
    algorithm = {**FEDOGD, "sync": {"name": "every", "period": 20}}

    async def lived():
        content = run_content(algorithm, LINEAR, clients=1, gather=1, dtype="float64")
        async with serving(nats_server.url, content) as (hub, _):
            asked = {"folder": tmp_path, "alone": 0.3}
            async with await joined(nats_server.url, hub, "0", **asked) as learner:
                await learner.learn_many(xs, ys)
                gain = learner.gain
            await until(lambda: hub.status()["clients"]["0"]["state"] == "away")
            heard = hub.status()["alone"]["samples"]
            again = await joined(nats_server.url, hub, "0", **asked)
            await again.close()
            return gain, heard, again.gain

    gain, heard, again = asyncio.run(lived())
    assert heard == 30
    assert gain == again


def test_a_site_that_no_longer_learns_alone_is_no_longer_shown(nats_server, tmp_path, caplog):
    asked = {"folder": tmp_path, "alone": 0.3}
    xs, ys = drawn(10)

    async def lived():
        content = run_content(FEDOGD, LINEAR, clients=1, gather=1)
        async with serving(nats_server.url, content) as (hub, _):
            async with await joined(nats_server.url, hub, "0", **asked) as learner:
                await learner.learn_many(xs, ys)
            await until(lambda: hub.status()["alone"] is not None)
            async with await joined(nats_server.url, hub, "0", folder=tmp_path) as learner:
                await until(lambda: hub.status()["alone"] is None)
                return learner.gain

    assert asyncio.run(lived()) is None
    assert "the model that was learnt alone is dropped: it is not asked for" in caplog.text


@pytest.mark.parametrize("step", ["auto", -1.0, "much", float("nan")])
def test_steps_that_are_none_are_refused(nats_server, step):
    async def lived():
        content = run_content(FEDOGD, LINEAR, clients=1, gather=1)
        async with serving(nats_server.url, content) as (hub, _):
            await joined(nats_server.url, hub, "0", alone=step)

    with pytest.raises(BadParameter, match="join: alone must"):
        asyncio.run(lived())


def test_parts_with_domains_of_their_own_are_refused(nats_server):
    async def lived():
        ball = {"name": "l2_ball", "radius": 1.0}
        algorithm = {"name": "fedres_sgd", "step": 0.1, "domain": ball}
        content = run_content(algorithm, {"name": "personal", "shared": 2, "own": 2})
        async with serving(nats_server.url, content) as (hub, _):
            await joined(nats_server.url, hub, "0", alone=0.1)

    with pytest.raises(BadParameter, match="join: alone must be left out: of this algorithm each"):
        asyncio.run(lived())


def test_a_schedule_of_steps_will_do(nats_server):
    async def lived():
        content = run_content(FEDOGD, LINEAR, clients=1, gather=1)
        steps = parts.inverse_time(sigma=1.0, shift=5.0)
        async with (
            serving(nats_server.url, content) as (hub, _),
            await joined(nats_server.url, hub, "0", alone=steps) as learner,
        ):
            await learner.learn_one([1.0, 0.0], 1.0)
            return learner.gain

    assert asyncio.run(lived()) == 0.0  # both begin at zero


def claimed(samples=1, loss="1.0", alone="1.0"):
    """A heartbeat with a comparison, as JSON text."""
    found = f'"samples": {samples}, "loss": {loss}, "alone": {alone}'
    return f'{{"epoch": 1, "version": 1, "step": 0, "alone": {{{found}}}}}'.encode()


def test_a_heartbeat_has_it():
    sent = ClientHeartbeat(Position(1, 2, 0), alone=AloneLosses(4, 1.0, 3.0))
    assert read_client(pack_client(sent, {})) == sent
    assert read_client(pack_client(sent, {})).alone.gain == 0.5


@pytest.mark.parametrize(
    "data",
    [
        claimed(samples=-1),
        claimed(samples=1.5),
        claimed(samples="true"),
        claimed(loss="1e308"),
        claimed(alone="NaN"),
        claimed(alone="null"),
        claimed(alone='"much"'),
        b'{"epoch": 1, "version": 1, "step": 0, "alone": [1, 2, 3]}',
        b'{"epoch": 1, "version": 1, "step": 0, "alone": {"samples": 1}}',
    ],
    ids=lambda data: data[-40:],
)
def test_nonsense_is_not_believed(data):
    with pytest.raises((ValueError, TypeError)):
        read_client(data)


def test_the_sums_of_all_are_added():
    found = with_alone([AloneLosses(2, 1.0, 3.0), AloneLosses(3, 2.0, 1.0)])
    assert found == {"clients": 2, "samples": 5, "loss": 3.0, "alone": 4.0}
    assert with_alone([]) is None
