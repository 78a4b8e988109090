"""The host prepares the next chunk while the device computes the current one."""

import pytest

import mainstem as ms
from mainstem.engines.simulate import program, workers
from mainstem.streams import walking


@pytest.mark.parametrize("seeds", [1, 2])
def test_a_stretch_is_dispatched_before_the_next_is_prepared(monkeypatch, seeds):
    """All seeds in one group, as on a GPU; on a CPU each group dispatches in a thread of its own."""
    monkeypatch.setattr(workers, "shared_out", lambda seeds, layout: [seeds])
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
    assert order == [
        *(("dispatch", 1), ("prepare", 31), ("dispatch", 31)),
        *(("prepare", 61), ("dispatch", 61)),
    ]
