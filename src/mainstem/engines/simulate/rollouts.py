"""Rollouts: run the chunks of a job in turn, for all its configurations and seeds."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from mainstem import check
from mainstem import progress as progress_bar
from mainstem.base import cast
from mainstem.engines.simulate import chunks, debugger, hosts, workers
from mainstem.engines.simulate.job import Job, keys_of
from mainstem.engines.simulate.program import Program, gathered
from mainstem.engines.simulate.recorder import Recorder
from mainstem.engines.simulate.stage import Feed, Shape
from mainstem.errors import MainstemError


class Group:
    """A part of the rollouts, with the keys and the draws of their seeds."""

    def __init__(self, job: Job, seeds: list[int], program: Program):
        self.job, self.seeds, self.program = job, seeds, program
        keys, drawn = keys_of(seeds), self._stacked(job.stream.drawn)
        self.key = job.layout.put(keys if job.many else keys[0], seeds=self._axis)
        self.drawn = job.layout.put(cast(drawn, job.dtype), seeds=self._axis)

    @property
    def _axis(self) -> int | None:
        """The axis of the seeds in what differs between them."""
        return 0 if self.job.many else None

    def _stacked(self, of_seed: Callable[[int], Any]) -> Any:
        """What each seed has, stacked with the seeds' axis first, if there is one and they have anything."""
        first = of_seed(self.seeds[0])
        if not self.job.many or not jax.tree.leaves(first):
            return first
        return jax.tree.map(lambda *x: np.stack(x), first, *map(of_seed, self.seeds[1:]))

    def feed(self, current: chunks.Chunk) -> Feed:
        """The input of a chunk, on the devices."""
        job, chunk = self.job, self.job.stream.chunk
        pieces = self._stacked(lambda seed: chunk(seed, current.first, current.last))
        pieces = cast(pieces, job.dtype)
        placed = job.layout.put(pieces, seeds=self._axis, clients=2 if job.many else 1)
        return Feed(np.int32(current.first), placed, current.flags)

    def advance(self, state: Any, feed: Feed, shape: Shape) -> Any:
        """The state after a chunk, and its rows."""
        return self.program.advance(state, self.key, self.drawn, feed, shape)


def groups_of(job: Job, program: Program) -> list[Group]:
    """The rollouts in equal groups, as many as are computed at once: by configurations, or by seeds."""
    count = len(job.configurations)
    parts = workers.parts(count, job.layout)
    if count > 1:
        return [Group(job, job.seeds, program.part(n, parts)) for n in range(parts)]
    return [Group(job, seeds, program) for seeds in workers.shared_out(job.seeds, job.layout)]


def run_chunks(
    job: Job,
    program: Program,
    recorder: Recorder,
    title: Callable[[], str],
    progress: bool | None,
) -> Any:
    """Runs all chunks in turn and returns the final state. While the devices compute a chunk, the host prepares
    the next one and records the one before."""
    groups = groups_of(job, program)
    planned = job.plan_chunks(program, recorder.step)
    with workers.pool(len(groups), job.dtype) as each:
        states = [group.program.begin(group.key, group.drawn) for group in groups]
        if recorder.step:
            states = workers.parted(recorder.restored(workers.whole(states)), len(groups))
        with progress_bar.bar(title, job.steps, recorder.step, progress) as reached:
            waiting: Any = None  # rows that are not recorded yet
            feeds = _feeds(job, groups, planned, 0)
            for n, current in enumerate(planned):
                shapes = [current.shape] * len(groups)
                under_way = each(Group.advance, _on_host, groups, states, feeds, shapes)
                feeds = _feeds(job, groups, planned, n + 1)
                if waiting is not None:
                    recorder.write(*waiting)
                    reached(waiting[1])
                states, rows = (list(part) for part in zip(*under_way(), strict=True))
                waiting = workers.joined(rows), current.last
                hosts.in_order(waiting)
                last = n + 1 == len(planned)
                if last or recorder.due(current.last):
                    recorder.write(*waiting)
                    recorder.save(functools.partial(workers.whole, states), last)
                    reached(current.last)  # an interrupt is raised here: what was saved is resumed
                    waiting = None
    return workers.whole(states)


def _feeds(job: Job, groups: list[Group], planned: list[chunks.Chunk], n: int) -> list[Feed]:
    """The inputs of chunk n of the plan, for each group; the same one for groups with the same seeds."""
    if n >= len(planned):
        return []
    if len(job.configurations) > 1:
        return [groups[0].feed(planned[n])] * len(groups)
    return [group.feed(planned[n]) for group in groups]


def _on_host(done: tuple[Any, Any]) -> tuple[Any, Any]:
    """The state, still on the devices, and the rows on the host."""
    state, rows = done
    return state, jax.device_get(rows)


def debugged(job: Job, program: Program, recorder: Recorder) -> Any:
    """Runs all steps in turn, uncompiled, for the only seed; returns the final state."""
    if hosts.count() > 1:
        raise MainstemError("simulate: debug needs a single host")
    if job.many or recorder.step:
        raise check.refuse("simulate", "debug", "have one seed and no run to resume", job.seeds)
    group = Group(job, job.seeds, program)

    def pieces(t: int) -> Any:
        chunk = job.stream.chunk(job.seeds[0], t, t)
        return jax.tree.map(lambda x: x[0], cast(chunk, job.dtype))

    flags = np.asarray(job.algorithm.sync.after(np.arange(1, job.steps + 1)), bool)
    stage = program.stage._replace(key=group.key, drawn=group.drawn)
    state, rows = debugger.walk(stage, program.begin(group.key, group.drawn), pieces, flags)
    recorder.write(jax.device_get(gathered(rows)), job.steps)
    recorder.save(lambda: state, last=True)
    return state
