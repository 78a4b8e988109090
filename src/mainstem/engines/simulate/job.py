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
    """An algorithm and a problem: what a sweep varies."""

    algorithm: Algorithm
    problem: Problem


@dataclasses.dataclass(frozen=True)
class Job:
    """The checked arguments of a run, or of several runs whose configurations differ in numbers alone."""

    configurations: tuple[Configuration, ...]
    stream: Stream
    steps: int
    seeds: list[int]
    wires: wired
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
        if not self.wires.instant:
            settings["network"] = {"up": self.wires.up.tolist(), "down": self.wires.down.tolist()}
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
        return not self.plain and self.wires.instant and self.algorithm.sync.period is not None

    def program(self) -> Program:
        """The program to compile for the job, with its values on the devices."""
        plan, wires = (
            Plan(fast, self.stream.clients, self.measure, self.many, self.layout),
            self.wires,
        )
        if not self.quick:
            wires = wires.fitted(self.stream.clients, self.steps + 1)
            wires = wired(*(self.layout.lengthened(each, 0) for each in (wires.up, wires.down)))
            syncs = np.flatnonzero(self.algorithm.sync.after(np.arange(1, self.steps + 1))) + 1
            plan = plan._replace(
                path=reference,
                slots=(links.depth(syncs, wires.up), links.depth(syncs, wires.down)),
                pending=links.round_trip(syncs, wires),
            )
        made = [
            (error_feedback.applied(each.algorithm), each.problem) for each in self.configurations
        ]
        (algorithm, problem), varied = stacked(made)
        fixed = wires, self.weights
        sampler = on_devices(self.stream, self.dtype, self.layout)
        placed = self.layout.put(cast((algorithm, problem, fixed), self.dtype))
        if len(made) > 1:
            plan = plan._replace(varied=varied + (False,) * len(jax.tree.leaves((sampler, *fixed))))
        algorithm, problem, (wires, weights) = placed
        return Program(Values(algorithm, problem, sampler, wires, weights), plan)

    def plan_chunks(self, program: Program, after: int) -> list[chunks.Chunk]:
        """The steps after `after`, split into chunks for the device."""
        size, period = self.problem.parameters, self.algorithm.sync.period or 1
        stage = program.stage
        shares = fast.shares(stage)
        batched = self.quick and (fast.small(stage) if shares else size <= chunks.STORED)
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


def stacked(trees: Sequence[Any]) -> tuple[Any, tuple[bool, ...]]:
    """Trees of one structure as a single one, and for each leaf whether it differs, and has an axis for them.

    >>> stacked([(1.0, 2.0), (1.0, 3.0)])
    ((1.0, array([2., 3.])), (False, True))
    """
    leaves = list(zip(*(jax.tree.leaves(tree) for tree in trees), strict=True))
    varied = tuple(not all(same(each[0], other) for other in each[1:]) for each in leaves)
    if len(trees) > 1 and not any(varied):  # equal trees
        varied = (True, *varied[1:])
    joined = [np.stack(each) if it else each[0] for each, it in zip(leaves, varied, strict=True)]
    return jax.tree.unflatten(jax.tree.structure(trees[0]), joined), varied
