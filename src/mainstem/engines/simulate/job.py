"""Job: the checked arguments of a simulation, for one algorithm or for several configurations of one."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from mainstem.base import Algorithm, Problem, Stream, cast
from mainstem.engines import error_feedback
from mainstem.engines.simulate import chunks, fast, hosts, links, reference
from mainstem.engines.simulate.devices import Layout, on_devices
from mainstem.engines.simulate.program import Plan, Program, Values
from mainstem.engines.simulate.stage import Shape
from mainstem.parts import network as wired
from mainstem.spec import plain as described
from mainstem.value import once, same


class Configuration(NamedTuple):
    """An algorithm, a problem and the delays of the links: what a sweep varies."""

    algorithm: Algorithm
    problem: Problem
    wires: wired = wired()


@dataclasses.dataclass(frozen=True)
class Job:
    """The checked arguments of a run, or of several runs whose configurations differ in numbers alone."""

    configurations: tuple[Configuration, ...]
    stream: Stream
    steps: int
    seeds: list[int]
    dtype: str
    measure: tuple[str, ...]
    weights: np.ndarray | None
    layout: Layout
    plain: bool  # take the reference path
    chunk: int | None  # the most steps of a chunk
    every: int = 1  # a row of the trace is the mean over so many steps

    @property
    def algorithm(self) -> Algorithm:
        """The algorithm of the first configuration."""
        return self.configurations[0].algorithm

    @property
    def problem(self) -> Problem:
        """The problem of the first configuration."""
        return self.configurations[0].problem

    @property
    def instant(self) -> bool:
        """Whether the links have no delays, which is so for all configurations or for none."""
        return self.configurations[0].wires.instant

    def only(self, which: Sequence[int]) -> "Job":
        """The job with some of its configurations."""
        chosen = tuple(self.configurations[n] for n in which)
        return dataclasses.replace(self, configurations=chosen)

    @property
    def many(self) -> bool:
        """Whether there is an axis of seeds."""
        return len(self.seeds) > 1

    @property
    def rollouts(self) -> int:
        """The number of runs: one for each configuration and seed."""
        return len(self.configurations) * len(self.seeds)

    def spec(self) -> dict[str, Any]:
        """The job in the form of an experiment file."""
        settings: dict[str, Any] = {
            "steps": self.steps,
            "dtype": self.dtype,
            "measure": list(self.measure),
        }
        if self.weights is not None:
            settings["weights"] = self.weights.tolist()
        if self.every > 1:
            settings["every"] = self.every
        settings |= {"seeds": self.seeds} if self.many else {"seed": self.seeds[0]}
        if not self.instant:
            links = [
                {name: getattr(each.wires, name).tolist() for name in ("up", "down")}
                for each in self.configurations
            ]
            settings["network"] = links[0] if all(each == links[0] for each in links) else links
        problems = [described(each.problem) for each in self.configurations]
        return {
            "problem": problems if len(problems) > 1 else problems[0],
            "stream": once(self.stream, "spec", lambda: described(self.stream)),
            "algorithm": [described(each.algorithm) for each in self.configurations],
            "simulate": settings,
        }

    @property
    def quick(self) -> bool:
        """Whether the run can take the fast path."""
        sync, traits = self.algorithm.sync, self.algorithm.traits
        regular = sync.period is not None or (sync.silent and traits.carries is None)
        return not self.plain and self.instant and regular

    def program(self) -> Program:
        """The program to compile for the job, with its values on the devices."""
        plan = Plan(fast, self.stream.clients, self.measure, self.many, self.layout)
        wires = [each.wires for each in self.configurations]
        if not self.quick:
            wires = [self._fitted(each) for each in wires]
            plan = plan._replace(path=reference, **self._room(wires))
        made = [
            (error_feedback.applied(each.algorithm), each.problem) for each in self.configurations
        ]
        values, varied = stacked(made)
        delays, delayed = stacked(wires, differ=True)
        sampler = on_devices(self.stream, self.dtype, self.layout)
        placed = self.layout.put(cast((values, delays, self.weights), self.dtype))
        if len(made) > 1:
            same = tuple((False,) * len(jax.tree.leaves(each)) for each in (sampler, self.weights))
            plan = plan._replace(varied=varied + same[0] + delayed + same[1])
        (algorithm, problem), delays, weights = placed
        return Program(Values(algorithm, problem, sampler, delays, weights), plan)

    def _fitted(self, wires: wired) -> wired:
        """The delays of all clients and of the absent ones."""
        each = wires.fitted(self.stream.clients, self.steps + 1)
        return wired(*(self.layout.lengthened(delays, 0) for delays in (each.up, each.down)))

    def _room(self, wires: Sequence[wired]) -> dict[str, Any]:
        """The messages that must have room on the links of every configuration."""
        syncs = np.flatnonzero(self.algorithm.sync.after(np.arange(1, self.steps + 1))) + 1
        up = max(links.depth(syncs, each.up) for each in wires)
        down = max(links.depth(syncs, each.down) for each in wires)
        pending = max(links.round_trip(syncs, each) for each in wires)
        return {"slots": (up, down), "pending": pending}

    def plan_chunks(self, program: Program, after: int) -> list[chunks.Chunk]:
        """The steps after `after`, split into chunks for the device."""
        size, period = self.problem.parameters, self.algorithm.sync.period or 1
        stage = program.stage
        shares = fast.shares(stage)
        batched = self.quick and fast.stores_models(stage, self.rollouts)
        stored = (size if shares else size * self.stream.clients) if batched else None
        most = self.chunk or chunks.budget(self.stream, size, self.rollouts, stored, shares)
        most = hosts.agreed(most)
        batched = batched and period <= most  # else a round does not fit in memory
        if not self.quick:
            return chunks.by_flags(self.algorithm, self.steps, after, most)
        room = chunks.room(program, keys_of(self.seeds), self.steps) if shares else None
        shape = Shape(0, 0, cohort=room, batched=batched)
        return chunks.by_rounds(self.algorithm, self.steps, after, most, shape)


def keys_of(seeds: Sequence[int]) -> np.ndarray:
    """The key of each seed: `random.root` of all."""
    words = np.asarray(seeds, np.uint64)[:, None] >> np.array([0, 32], np.uint64)
    return words.astype(np.uint32)


def stacked(trees: Sequence[Any], differ: bool = False) -> tuple[Any, tuple[bool, ...]]:
    """Trees of one structure as a single one, and for each leaf whether it differs, and has an axis for them.

    Of equal trees one leaf has the axis, unless they `differ` elsewhere.

    >>> stacked([(1.0, 2.0), (1.0, 3.0)])
    ((1.0, array([2., 3.])), (False, True))
    """
    leaves = list(zip(*(jax.tree.leaves(tree) for tree in trees), strict=True))
    varied = tuple(not all(same(each[0], other) for other in each[1:]) for each in leaves)
    if len(trees) > 1 and not any(varied) and not differ:
        varied = (True, *varied[1:])
    joined = [np.stack(each) if it else each[0] for each, it in zip(leaves, varied, strict=True)]
    return jax.tree.unflatten(jax.tree.structure(trees[0]), joined), varied
