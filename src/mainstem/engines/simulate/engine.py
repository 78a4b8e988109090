"""`simulate`: runs an algorithm on a stream in a compiled program, on one machine or many."""

import contextlib
import dataclasses
import functools
import numbers
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check, random
from mainstem import progress as progress_bar
from mainstem.advice.auto_step import settled
from mainstem.base import Algorithm, Problem, Stream, cast
from mainstem.engines import error_feedback
from mainstem.engines.run_context import broadcast_size
from mainstem.engines.simulate import chunks, debugger, fast, links, reference, workers
from mainstem.engines.simulate.admission import admit, common_domain
from mainstem.engines.simulate.devices import Layout, layout
from mainstem.engines.simulate.program import Plan, Program, Values, gathered
from mainstem.engines.simulate.recorder import Recorder
from mainstem.engines.simulate.stage import Feed, Shape
from mainstem.errors import Diverged, FinishedRun
from mainstem.parts import network as wired
from mainstem.parts import plain as plain_codec
from mainstem.run import Run, Summary, load
from mainstem.spec import name_of
from mainstem.spec import plain as described

DTYPES = ("float32", "float64")
NAMED = 10  # clients that diverged, by index


def simulate(
    algorithm: Algorithm,
    problem: Problem,
    stream: Stream,
    *,
    steps: int,
    seed: int = 0,
    seeds: int | Sequence[int] | None = None,
    network: wired = wired(),
    dtype: str = "float32",
    measure: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
    folder: str | Path | None = None,
    checkpoint: float = 10.0,
    chunk: int | None = None,
    devices: int | Sequence[Any] | None = None,
    progress: bool | None = None,
    plain: bool = False,
    debug: bool = False,
) -> Run:
    """Runs `algorithm` for `steps` steps of `stream` and returns the run.

    The same seed gives the same trace, whatever the chunk size. `seeds` (how many from `seed` on, or a list)
    runs that many rollouts as one program. `measure` asks for columns: collective, consensus, deviation,
    expected, virtual, average, scores (for AUC, F1 and log loss), predictions (for pinball loss and quantiles
    of the error), "loss per client", "loss per client every 10" (steps). By default, the collective loss is
    measured if the clients have models of their own, the problem is convex and not personal, and it is cheap.
    `weights` (lambda_i of Agarwal et al. 2020, eq. (1)) are the weights of the clients' losses in personal regret.

    With a `folder`, the trace is written to disk during the run, with a checkpoint every `checkpoint` seconds;
    a call with the same arguments resumes from it, or returns the run if it is finished. `plain` takes the
    reference path, without optimisations; `debug` takes it uncompiled, and names the step and the client where
    a value stops being finite.

    >>> import mainstem as ms
    >>> run = ms.simulate(
    ...     ms.fedogd(step=0.5), ms.problems.softmax(features=64, classes=10),
    ...     ms.streams.digits(clients=100), steps=200)
    >>> bool(run.accuracy[-1] > 0.7)
    True
    """
    steps = check.integer("simulate", "steps", steps, least=1)
    check.one_of("simulate", "dtype", dtype, DTYPES)
    if chunk is not None:
        check.integer("simulate", "chunk", chunk, least=1)
    with jax.enable_x64(dtype == "float64"):
        measured = admit(algorithm, problem, stream, steps, measure)
    check.at_least("simulate", "checkpoint", checkpoint, 0)
    check.instance("simulate", "network", network, wired, "network(up=1)")
    wires = network.fitted(stream.clients, steps)
    counted, chosen = _weights(weights, stream.clients), _seeds(seed, seeds)
    trip = 1 + int(np.max(wires.up) + np.max(wires.down))
    algorithm = settled(algorithm, problem, stream, steps=steps, seed=chosen[0], round_trip=trip)
    spread = layout(devices, stream.clients)
    arguments = algorithm, problem, stream, steps, chosen, wires, dtype, measured, counted
    job = Job(*arguments, spread, plain or debug, chunk)
    path = None if folder is None else Path(folder)
    try:
        opened = Recorder(path, job.spec, job.seeds, checkpoint)
    except FinishedRun:
        return load(Path(folder or ""), algorithm=algorithm, problem=problem, stream=stream)
    with jax.enable_x64(dtype == "float64"), contextlib.closing(opened) as recorder:
        program = job.program()
        sent = program.sent
        algorithm.codec.check(sent)
        if algorithm.downlink is not None:
            algorithm.downlink.check(broadcast_size(program.stage))
        state = (
            _debugged(job, program, recorder)
            if debug
            else _run_chunks(job, program, recorder, progress)
        )
        server, clients = jax.device_get(program.models(state))
        return _closed(job, recorder, sent, server, clients)


@dataclasses.dataclass(frozen=True)
class Job:
    """The checked arguments of a run."""

    algorithm: Algorithm
    problem: Problem
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

    @property
    def many(self) -> bool:
        """Whether there is an axis of seeds."""
        return len(self.seeds) > 1

    @property
    def keys(self) -> np.ndarray:
        """The key of each seed."""
        return np.stack([random.root(seed) for seed in self.seeds])

    @functools.cached_property  # fingerprints of large arrays take time
    def spec(self) -> dict[str, Any]:
        """The job in the form of an experiment file."""
        settings: dict[str, Any] = {
            "steps": self.steps,
            "dtype": self.dtype,
            "measure": list(self.measure),
        }
        if self.weights is not None:
            settings["weights"] = self.weights.tolist()
        settings |= {"seeds": self.seeds} if self.many else {"seed": self.seeds[0]}
        if not self.wires.instant:
            settings["network"] = {"up": self.wires.up.tolist(), "down": self.wires.down.tolist()}
        return {
            "problem": described(self.problem),
            "stream": described(self.stream),
            "algorithm": [described(self.algorithm)],
            "simulate": settings,
        }

    @property
    def quick(self) -> bool:
        """Whether the run can take the fast path."""
        return not self.plain and self.wires.instant and self.algorithm.sync.period is not None

    def program(self) -> Program:
        """The program to compile for the job, with its values on the devices."""
        plan = Plan(fast, self.stream.clients, self.measure, self.many, self.layout)
        if not self.quick:
            syncs = np.flatnonzero(self.algorithm.sync.after(np.arange(1, self.steps + 1))) + 1
            plan = plan._replace(
                path=reference,
                slots=(links.depth(syncs, self.wires.up), links.depth(syncs, self.wires.down)),
                pending=links.round_trip(syncs, self.wires),
            )
        algorithm = error_feedback.applied(self.algorithm)
        values = Values(algorithm, self.problem, self.stream.device, self.wires, self.weights)
        return Program(self.layout.put(cast(values, self.dtype), None), plan)

    def plan_chunks(self, program: Program, after: int) -> list[chunks.Chunk]:
        """The steps after `after`, split into chunks for the device."""
        size, period = self.problem.parameters, self.algorithm.sync.period or 1
        shares = fast.shares(program.stage)
        batched = self.quick and not shares and size <= chunks.STORED
        most = self.chunk or chunks.budget(self.stream, size, len(self.seeds), batched)
        batched = batched and period <= most  # else a round does not fit in memory
        if not self.quick:
            return chunks.by_flags(self.algorithm, self.steps, after, most)
        room = chunks.room(program, self.keys, self.steps) if shares else None
        shape = Shape(0, 0, cohort=room, batched=batched)
        return chunks.by_rounds(self.algorithm, self.steps, after, most, shape)


def _seeds(seed: int, seeds: int | Sequence[int] | None) -> list[int]:
    if seeds is None:
        return [check.integer("simulate", "seed", seed, least=0, most=2**63 - 1)]
    if not isinstance(seeds, numbers.Integral | Sequence) or isinstance(seeds, str):
        raise check.refuse("simulate", "seeds", "be a number of seeds or a list of them", seeds)
    if isinstance(seeds, numbers.Integral):
        first = check.integer("simulate", "seed", seed, least=0, most=2**62)
        return list(range(first, first + check.integer("simulate", "seeds", seeds, least=1)))
    if not len(seeds):
        raise check.refuse("simulate", "seeds", "name at least one seed", seeds)
    return [check.integer("simulate", "seeds", each, least=0, most=2**63 - 1) for each in seeds]


def _weights(weights: Sequence[float] | None, clients: int) -> np.ndarray | None:
    if weights is None:
        return None
    wanted = f"be {clients} numbers of at least 0, not all 0"
    try:
        array = np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        raise check.refuse("simulate", "weights", wanted, weights) from None
    fine = array.shape == (clients,) and np.isfinite(array).all()
    if not fine or (array < 0).any() or not array.any():
        raise check.refuse("simulate", "weights", wanted, weights)
    return array


def _run_chunks(job: Job, program: Program, recorder: Recorder, progress: bool | None) -> Any:
    """Runs all chunks in turn: the host prepares the next one while the devices compute this one."""
    groups = [SeedGroup(job, seeds, program) for seeds in workers.shared_out(job.seeds, job.layout)]
    planned = job.plan_chunks(program, recorder.step)
    with workers.pool(len(groups), job.dtype) as each:
        states = [program.begin(group.key, group.drawn) for group in groups]
        states = workers.parted(recorder.restored(workers.whole(states)), len(groups))
        with progress_bar.bar(
            name_of(job.algorithm), job.steps, recorder.step, progress
        ) as reached:
            feeds = [group.feed(planned[0]) for group in groups] if planned else []
            for n, current in enumerate(planned):
                shapes = [current.shape] * len(groups)
                under_way = each(SeedGroup.advance, _on_host, groups, states, feeds, shapes)
                last = n + 1 == len(planned)
                feeds = [] if last else [group.feed(planned[n + 1]) for group in groups]
                states, rows = (list(part) for part in zip(*under_way(), strict=True))
                whole = functools.partial(workers.whole, states)
                recorder.write(workers.joined(rows), current.last, whole, last)
                reached(current.last)
    return workers.whole(states)


def _on_host(done: tuple[Any, Any]) -> tuple[Any, Any]:
    """The state, still on the devices, and the rows on the host."""
    state, rows = done
    return state, jax.device_get(rows)


class SeedGroup:
    """A group of the seeds, with their keys and draws."""

    def __init__(self, job: Job, seeds: list[int], program: Program):
        self.job = dataclasses.replace(job, seeds=seeds)
        self.many, self.program = job.many, program
        keys, drawn = self.job.keys, [job.stream.drawn(seed) for seed in seeds]
        self.key = job.layout.put(keys if self.many else keys[0], None)
        self.drawn = job.layout.put(cast(self._stacked(drawn), job.dtype), None)

    def _stacked(self, each: list[Any]) -> Any:
        """The values stacked with the seeds' axis first, if there is one."""
        return jax.tree.map(lambda *x: np.stack(x), *each) if self.many else each[0]

    def feed(self, current: chunks.Chunk) -> Feed:
        """The input of a chunk, on the devices."""
        job, chunk = self.job, self.job.stream.chunk
        pieces = self._stacked([chunk(seed, current.first, current.last) for seed in job.seeds])
        placed = job.layout.put(cast(pieces, job.dtype), 2 if self.many else 1)
        return Feed(jnp.int32(current.first), placed, current.flags)

    def advance(self, state: Any, feed: Feed, shape: Shape) -> Any:
        """The state after a chunk, and its rows."""
        return self.program.advance(state, self.key, self.drawn, feed, shape)


def _debugged(job: Job, program: Program, recorder: Recorder) -> Any:
    """Runs all steps in turn, uncompiled, for the only seed."""
    if job.many or recorder.step:
        raise check.refuse("simulate", "debug", "have one seed and no run to resume", job.seeds)
    group = SeedGroup(job, job.seeds, program)

    def pieces(t: int) -> Any:
        chunk = job.stream.chunk(job.seeds[0], t, t)
        return jax.tree.map(lambda x: x[0], cast(chunk, job.dtype))

    flags = np.asarray(job.algorithm.sync.after(np.arange(1, job.steps + 1)), bool)
    stage = program.stage._replace(key=group.key, drawn=group.drawn)
    state, rows = debugger.walk(stage, program.begin(group.key, group.drawn), pieces, flags)
    recorder.write(jax.device_get(gathered(rows)), job.steps, lambda: state, last=True)
    return state


def _closed(
    job: Job, recorder: Recorder, sent: int, server: np.ndarray, clients: np.ndarray | None
) -> Run:
    """The finished run; an upload has `sent` numbers, a broadcast as many as the server's model."""
    model = {"server": server} | ({} if clients is None else {"clients": clients})
    if recorder.average is not None:
        mean = recorder.average / job.steps
        model["average"] = mean if job.many else mean[0]
    codec, word = job.algorithm.codec, 8 * np.dtype(job.dtype).itemsize
    size, down = server.shape[-1], job.algorithm.downlink or plain_codec()
    summary = Summary(
        steps=job.steps,
        seeds=job.seeds,
        clients=job.stream.clients,
        parameters=job.problem.parameters,
        dtype=job.dtype,
        shared=job.algorithm.traits.decides_with_broadcast and job.wires.level,
        uplink_bits=codec.bits(sent, word),
        uplink_bytes=codec.nbytes(sent, word),
        downlink_bits=down.bits(size, word),
        downlink_bytes=down.nbytes(size, word),
        diverged=[
            [seed, step, len(clients), *clients[:NAMED]]
            for seed, (step, clients) in sorted(recorder.diverged.items())
        ],
        labels=None if job.stream.labels is None else list(job.stream.labels),
    )
    trace = recorder.finish(model, summary._asdict())
    domain = common_domain(job.algorithm.domain, job.problem.domain)
    made = job.algorithm, job.problem, job.stream, domain
    run = Run(job.spec, summary, trace, model, *made, recorder.path)
    if run.diverged:
        warnings.warn(f"{run.name} {run.diverged}: a smaller step may help", Diverged, stacklevel=3)
    return run
