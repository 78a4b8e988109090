"""Batching: clients of one event loop learn in one call, with the same result as one by one."""

import asyncio

import jax
import numpy as np
import pytest

from mainstem.base import Sample
from mainstem.engines.federate.client import batching
from mainstem.engines.federate.client import state as states
from mainstem.engines.federate.client.kernels import Kernels
from mainstem.engines.federate.client.state import ClientState, learn_together
from mainstem.engines.federate.protocol.messages import Broadcast
from mainstem.engines.federate.protocol.run_document import parse
from tests.federate.in_process import run_content

LINEAR = {"name": "linear", "features": 3}
ALGORITHMS = [
    {"name": "fedogd", "step": 0.1},
    {"name": "ofediq", "step": 0.1, "rate": 0.5, "period": 1, "levels": None},
]
CLIENTS = 7


def drawn_up(algorithm, pace):
    rules = {"clients": CLIENTS, "pace": pace, "dtype": "float64"}
    return Kernels(parse(run_content(algorithm, LINEAR, **rules)))


@pytest.fixture(params=ALGORITHMS, ids=lambda algorithm: algorithm["name"])
def kernels(request):
    return drawn_up(request.param, "lockstep")


def sample(draw):
    return Sample(draw.normal(size=3), np.float64(draw.normal()))


def broadcast(kernels, version):
    """A broadcast; of each client one more step is merged than of the one before it."""
    model = np.random.default_rng(version).normal(size=kernels.document.message).tobytes()
    return Broadcast(kernels.document.digest, version, version, *[np.arange(CLIENTS)] * 2, model)


def leaves(client_state):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(client_state.client)]


async def learnt(client_state, sample, uploading):
    """The upload of a client that learns in one call with the others, or None."""
    uploads = []
    await batching.learn(client_state, sample, lambda: uploading, uploads.append)
    (upload,) = uploads
    return upload


@pytest.fixture
def calls(monkeypatch):
    """The number of clients in each call."""
    counted, real = [], states.learn_together
    monkeypatch.setattr(
        states,
        "learn_together",
        lambda each, *rest: counted.append(len(each)) or real(each, *rest),
    )
    return counted


def test_all_in_one_call_is_one_by_one(kernels, calls):
    many = [ClientState(kernels, k) for k in range(CLIENTS)]
    alone = [ClientState(kernels, k) for k in range(CLIENTS)]
    draw = np.random.default_rng(0)

    async def step(samples, uploading):
        return await asyncio.gather(
            *(learnt(m, s, uploading) for m, s in zip(many, samples, strict=True))
        )

    for t in range(1, 7):
        samples, uploading = [sample(draw) for _ in many], t % 3 == 0
        uploads = asyncio.run(step(samples, uploading))
        expected = [
            learn_together([m], [s], uploading)[0] for m, s in zip(alone, samples, strict=True)
        ]
        for one, other in zip(uploads, expected, strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                assert one._replace(loss=0, body=None) == other._replace(loss=0, body=None)
                numbers = [np.frombuffer(each.body or b"") for each in (one, other)]
                np.testing.assert_allclose(*numbers, rtol=1e-12, atol=1e-14)
        if uploading:
            message = broadcast(kernels, t)
            for each in (*many, *alone):
                each.receive(message)
    for one, other in zip(many, alone, strict=True):
        assert one.totals().step == other.totals().step
        assert one.totals().loss == pytest.approx(other.totals().loss, rel=1e-12)
        for a, b in zip(leaves(one), leaves(other), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    assert calls == [4, 2, 1] * 6


def test_calls_of_changing_clients_are_one_by_one(kernels):
    """The states of a call stay together until another call, a prediction or a restore takes one out."""
    many = [ClientState(kernels, k) for k in range(CLIENTS)]
    alone = [ClientState(kernels, k) for k in range(CLIENTS)]
    draw = np.random.default_rng(3)
    members = [(0, 1, 2, 3), (0, 1, 2, 3), (1, 0, 2, 3), (0, 1), (4, 5, 0, 1), (2,), (0, 1, 2, 3)]
    for t, group in enumerate(members):
        samples = [sample(draw) for _ in group]
        learn_together([many[k] for k in group], samples, False)
        for k, each in zip(group, samples, strict=True):
            learn_together([alone[k]], [each], False)
        if t == 0:  # before the same call comes again
            late = sample(draw)
            for each in (many[2], alone[2]):
                each.learn_late(late, each.model_of(each.client))
        if t == 3:
            decided = [each.decide(samples[0].shown)[0] for each in (many[1], alone[1])]
            np.testing.assert_allclose(*decided, rtol=1e-12)
            for each in (many[0], alone[0]):
                each.restore(many[4].client, each.progress)
    for one, other in zip(many, alone, strict=True):
        assert one.step == other.step
        with jax.enable_x64(False):  # as in a process that has not asked for float64
            found = leaves(one)
        for a, b in zip(found, leaves(other), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_who_differs_learns_apart(kernels, calls):
    """Clients that have received a newer model, or must upload, are in another call than the others."""
    one, two, three = (ClientState(kernels, k) for k in range(3))
    two.receive(broadcast(kernels, 1))
    draw = np.random.default_rng(1)

    async def step():
        return await asyncio.gather(
            learnt(one, sample(draw), False),
            learnt(two, sample(draw), False),
            learnt(three, sample(draw), True),
        )

    first, second, third = asyncio.run(step())
    assert (first, second) == (None, None)
    assert third.step == 1
    assert calls == [1, 1, 1]


def test_a_sample_that_does_not_fit_harms_nobody_else(kernels):
    one, two, three = (ClientState(kernels, k) for k in range(3))
    draw = np.random.default_rng(2)
    wrong = Sample(np.zeros(5), np.float64(1.0))

    async def step():
        return await asyncio.gather(
            learnt(one, sample(draw), False),
            learnt(two, wrong, False),
            learnt(three, sample(draw), False),
            return_exceptions=True,
        )

    first, second, third = asyncio.run(step())
    assert (first, third) == (None, None)
    assert isinstance(second, Exception)
    assert [one.step, two.step, three.step] == [1, 0, 1]


def test_who_is_cancelled_has_not_learnt(kernels):
    one, two = ClientState(kernels, 0), ClientState(kernels, 1)
    draw = np.random.default_rng(4)

    async def step():
        tasks = [asyncio.create_task(learnt(m, sample(draw), False)) for m in (one, two)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, second = asyncio.run(step())
    assert isinstance(first, asyncio.CancelledError)
    assert second is None
    assert (one.step, two.step) == (0, 1)


def test_who_is_cancelled_after_the_others_have_learnt_for_it_has_uploaded(kernels):
    one, two = ClientState(kernels, 0), ClientState(kernels, 1)
    draw, uploads = np.random.default_rng(5), []

    async def step():
        first = asyncio.create_task(learnt(one, sample(draw), True))
        asyncio.get_running_loop().call_soon(lambda: asyncio.get_running_loop().call_soon(cancel))
        second = asyncio.create_task(
            batching.learn(two, sample(draw), lambda: True, uploads.append)
        )

        def cancel():  # between the first, which learns for both, and the second
            if one.step:
                second.cancel()

        return await asyncio.gather(first, second, return_exceptions=True)

    _, second = asyncio.run(step())
    assert isinstance(second, asyncio.CancelledError)
    assert (one.step, two.step) == (1, 1)
    assert [upload.step for upload in uploads] == [1]


def test_an_upload_that_one_cannot_store_harms_nobody_else(kernels):
    one, two = ClientState(kernels, 0), ClientState(kernels, 1)
    draw, uploads = np.random.default_rng(6), []

    def full(upload):
        raise OSError("no space left")

    async def step():
        return await asyncio.gather(
            batching.learn(one, sample(draw), lambda: True, full),
            batching.learn(two, sample(draw), lambda: True, uploads.append),
            return_exceptions=True,
        )

    first, second = asyncio.run(step())
    assert isinstance(first, OSError)
    assert second is None
    assert len(uploads) == 1


def test_large_models_learn_one_by_one(calls, monkeypatch):
    monkeypatch.setattr(batching, "MAX_NUMBERS", 4)
    kernels = drawn_up(ALGORITHMS[0], "lockstep")
    draw = np.random.default_rng(7)

    async def step():
        await asyncio.gather(
            *(learnt(ClientState(kernels, k), sample(draw), True) for k in range(3))
        )

    asyncio.run(step())
    assert calls == [1, 1, 1]


def test_at_their_own_pace_they_learn_one_by_one(calls):
    """Their number in a call would vary, and each number would be compiled."""
    kernels = drawn_up(ALGORITHMS[0], "free")
    draw = np.random.default_rng(8)

    async def step():
        await asyncio.gather(
            *(learnt(ClientState(kernels, k), sample(draw), True) for k in range(3))
        )

    asyncio.run(step())
    assert calls == [1, 1, 1]
