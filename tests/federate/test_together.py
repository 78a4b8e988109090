"""Clients of one event loop learn in one call: each as it would alone, and none at another's expense."""

import asyncio

import jax
import numpy as np
import pytest

from mainstem.base import Sample
from mainstem.engines.federate import member as members
from mainstem.engines.federate import together
from mainstem.engines.federate.charter import draw_up
from mainstem.engines.federate.member import Member, turn
from mainstem.engines.federate.moves import Moves
from mainstem.engines.federate.wire import Broadcast
from tests.federate.together import document

LINEAR = {"name": "linear", "features": 3}
ALGORITHMS = [
    {"name": "fedogd", "step": 0.1},
    {"name": "ofediq", "step": 0.1, "rate": 0.5, "period": 1, "levels": None},
]
CLIENTS = 7


def drawn_up(algorithm, pace):
    rules = {"clients": CLIENTS, "pace": pace, "dtype": "float64"}
    return Moves(draw_up(document(algorithm, LINEAR, **rules)))


@pytest.fixture(params=ALGORITHMS, ids=lambda algorithm: algorithm["name"])
def moves(request):
    return drawn_up(request.param, "lockstep")


def sample(draw):
    return Sample(draw.normal(size=3), np.float64(draw.normal()))


def said(moves, version):
    """A broadcast; each client is merged as far as the one before it, and one step further."""
    model = np.random.default_rng(version).normal(size=moves.charter.message).tobytes()
    return Broadcast(moves.charter.digest, version, version, np.arange(CLIENTS), model)


def state(member):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(member.client)]


async def learnt(member, sample, speaks):
    """What it says when it learns together with the others."""
    uploads = []
    await together.turn(member, sample, lambda: speaks, uploads.append)
    (upload,) = uploads
    return upload


@pytest.fixture
def calls(monkeypatch):
    """How many members were in each call."""
    counted, real = [], members.turn
    monkeypatch.setattr(
        members, "turn", lambda each, *rest: counted.append(len(each)) or real(each, *rest)
    )
    return counted


def test_all_in_one_call_is_one_by_one(moves, calls):
    many = [Member(moves, k) for k in range(CLIENTS)]
    alone = [Member(moves, k) for k in range(CLIENTS)]
    draw = np.random.default_rng(0)

    async def step(samples, speaks):
        return await asyncio.gather(
            *(learnt(m, s, speaks) for m, s in zip(many, samples, strict=True))
        )

    for t in range(1, 7):
        samples, speaks = [sample(draw) for _ in many], t % 3 == 0
        uploads = asyncio.run(step(samples, speaks))
        expected = [turn([m], [s], speaks)[0] for m, s in zip(alone, samples, strict=True)]
        for one, other in zip(uploads, expected, strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                assert one._replace(loss=0, body=None) == other._replace(loss=0, body=None)
                numbers = [np.frombuffer(each.body or b"") for each in (one, other)]
                np.testing.assert_allclose(*numbers, rtol=1e-12, atol=1e-14)
        if speaks:
            news = said(moves, t)
            for each in (*many, *alone):
                each.listen(news)
    for one, other in zip(many, alone, strict=True):
        assert one.count().step == other.count().step
        assert one.count().loss == pytest.approx(other.count().loss, rel=1e-12)
        for a, b in zip(state(one), state(other), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    assert calls == [4, 2, 1] * 6


def test_who_differs_learns_apart(moves, calls):
    """Who has heard a newer model, or must speak, is in another call than who has not and must not."""
    one, two, three = (Member(moves, k) for k in range(3))
    two.listen(said(moves, 1))
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


def test_a_sample_that_does_not_fit_harms_nobody_else(moves):
    one, two, three = (Member(moves, k) for k in range(3))
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


def test_who_is_cancelled_has_not_learnt(moves):
    one, two = Member(moves, 0), Member(moves, 1)
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


def test_who_is_cancelled_after_the_others_have_learnt_for_it_has_spoken(moves):
    one, two = Member(moves, 0), Member(moves, 1)
    draw, uploads = np.random.default_rng(5), []

    async def step():
        first = asyncio.create_task(learnt(one, sample(draw), True))
        asyncio.get_running_loop().call_soon(lambda: asyncio.get_running_loop().call_soon(cancel))
        second = asyncio.create_task(together.turn(two, sample(draw), lambda: True, uploads.append))

        def cancel():  # between the first, which learns for both, and the second
            if one.step:
                second.cancel()

        return await asyncio.gather(first, second, return_exceptions=True)

    _, second = asyncio.run(step())
    assert isinstance(second, asyncio.CancelledError)
    assert (one.step, two.step) == (1, 1)
    assert [upload.step for upload in uploads] == [1]


def test_what_one_cannot_keep_is_its_own_affair(moves):
    one, two = Member(moves, 0), Member(moves, 1)
    draw, uploads = np.random.default_rng(6), []

    def full(upload):
        raise OSError("no space left")

    async def step():
        return await asyncio.gather(
            together.turn(one, sample(draw), lambda: True, full),
            together.turn(two, sample(draw), lambda: True, uploads.append),
            return_exceptions=True,
        )

    first, second = asyncio.run(step())
    assert isinstance(first, OSError)
    assert second is None
    assert len(uploads) == 1


def test_large_models_learn_one_by_one(calls, monkeypatch):
    monkeypatch.setattr(together, "NUMBERS", 4)
    moves = drawn_up(ALGORITHMS[0], "lockstep")
    draw = np.random.default_rng(7)

    async def step():
        await asyncio.gather(*(learnt(Member(moves, k), sample(draw), True) for k in range(3)))

    asyncio.run(step())
    assert calls == [1, 1, 1]


def test_at_their_own_pace_they_learn_one_by_one(calls):
    """They are never as many as before, and each number of them would be compiled."""
    moves = drawn_up(ALGORITHMS[0], "free")
    draw = np.random.default_rng(8)

    async def step():
        await asyncio.gather(*(learnt(Member(moves, k), sample(draw), True) for k in range(3)))

    asyncio.run(step())
    assert calls == [1, 1, 1]
