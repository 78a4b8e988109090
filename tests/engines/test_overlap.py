"""The host prepares the next chunk while the device computes the current one."""

import pytest

import mainstem as ms
from mainstem.engines.simulate import program
from mainstem.streams import walking


@pytest.mark.parametrize("seeds", [1, 2])
def test_a_stretch_is_dispatched_before_the_next_is_prepared(monkeypatch, seeds):
    calls = []
    advance, chunk = program.Program.advance, walking.chunk

    def dispatched(self, state, key, drawn, feed, shape):
        calls.append(("dispatch", int(feed.first)))
        return advance(self, state, key, drawn, feed, shape)

    def prepared(self, seed, first, last):
        calls.append(("prepare", first))
        return chunk(self, seed, first, last)

    monkeypatch.setattr(program.Program, "advance", dispatched)
    monkeypatch.setattr(walking, "chunk", prepared)
    problem = ms.problems.batched(ms.problems.logistic(2, ridge=2.0, intercept=False))
    ms.simulate(
        *(ms.fedogd(0.1), problem, walking(clients=5, holds=3)),
        steps=90,
        chunk=30,
        seeds=seeds,
        measure=(),
    )
    rest = [each for each in calls if each != ("prepare", 1)]
    order = [each for n, each in enumerate(rest) if each not in rest[:n]]
    if seeds == 1:
        assert order == [
            *(("dispatch", 1), ("prepare", 31), ("dispatch", 31)),
            *(("prepare", 61), ("dispatch", 61)),
        ]
    else:  # each worker dispatches in a thread of its own
        assert order.index(("dispatch", 1)) < order.index(("dispatch", 31))


def test_domains_are_compared_by_what_they_are():
    problem = ms.problems.linear(64, domain=ms.parts.box(-1, 1))
    algorithm = ms.fedomd(0.1, mirror=ms.parts.euclidean(ms.parts.box(-1, 1.0000001)))
    with pytest.raises(ms.MainstemError, match=r"box \[-1, 1\.0000001\], the problem is on"):
        ms.simulate(algorithm, problem, ms.streams.digits(clients=10), steps=3)
