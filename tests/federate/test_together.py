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


def always():
    return True


def never():
    return False


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
            *(together.turn(m, s, speaks) for m, s in zip(many, samples, strict=True))
        )

    for t in range(1, 7):
        samples, speaks = [sample(draw) for _ in many], t % 3 == 0
        uploads = asyncio.run(step(samples, always if speaks else never))
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
    assert calls == [7] * 6


def test_who_differs_learns_apart(moves, calls):
    """Who has heard a newer model, or must speak, is in another call than who has not and must not."""
    one, two, three = (Member(moves, k) for k in range(3))
    two.listen(said(moves, 1))
    draw = np.random.default_rng(1)

    async def step():
        return await asyncio.gather(
            together.turn(one, sample(draw), never),
            together.turn(two, sample(draw), never),
            together.turn(three, sample(draw), always),
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
            together.turn(one, sample(draw), never),
            together.turn(two, wrong, never),
            together.turn(three, sample(draw), never),
            return_exceptions=True,
        )

    first, second, third = asyncio.run(step())
    assert (first, third) == (None, None)
    assert isinstance(second, Exception)
    assert [one.step, two.step, three.step] == [1, 0, 1]


def test_one_client_twice_learns_in_turn(moves, calls):
    twice, once = Member(moves, 0), Member(moves, 0)
    draw = np.random.default_rng(3)
    first, second = sample(draw), sample(draw)

    async def step():
        await asyncio.gather(
            together.turn(twice, first, never), together.turn(twice, second, never)
        )

    asyncio.run(step())
    for each in (first, second):
        turn([once], [each], False)
    assert twice.step == 2
    for a, b in zip(state(twice), state(once), strict=True):
        np.testing.assert_array_equal(a, b)


def test_who_is_cancelled_has_not_learnt(moves):
    one, two = Member(moves, 0), Member(moves, 1)
    draw = np.random.default_rng(4)

    async def step():
        tasks = [asyncio.create_task(together.turn(m, sample(draw), never)) for m in (one, two)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, second = asyncio.run(step())
    assert isinstance(first, asyncio.CancelledError)
    assert second is None
    assert (one.step, two.step) == (0, 1)


def test_at_the_free_pace_few_sizes_are_compiled(calls):
    moves = drawn_up(ALGORITHMS[0], "free")
    draw = np.random.default_rng(5)
    several = [Member(moves, k % CLIENTS) for k in range(45)]

    async def step():
        await asyncio.gather(*(together.turn(each, sample(draw), never) for each in several))

    asyncio.run(step())
    assert calls == [32, 8, 2, 2, 1]
    assert all(each.step == 1 for each in several)
