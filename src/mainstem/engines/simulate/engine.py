"""`simulate`: an algorithm on a stream, compiled, on one machine or many."""

import contextlib
import functools
import numbers
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check, random
from mainstem.advice.step import settled
from mainstem.base import Algorithm, Problem, Stream, cast
from mainstem.engines import progress as progress_bar
from mainstem.engines.simulate import chunks, debugger, program, rounds, workers
from mainstem.engines.simulate.admission import admit, common_domain
from mainstem.engines.simulate.devices import Layout, layout
from mainstem.engines.simulate.ledger import Book
from mainstem.engines.simulate.program import Program
from mainstem.parts.network import Network, fitted
from mainstem.parts.network import network as links
from mainstem.run import Run, Summary
from mainstem.run import folder as folders
from mainstem.spec import plain as described

DTYPES = ("float32", "float64")


def simulate(
    algorithm: Algorithm,
    problem: Problem,
    stream: Stream,
    *,
    steps: int,
    seed: int = 0,
    seeds: int | Sequence[int] | None = None,
    network: Network | None = None,
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
    """Run `algorithm` for `steps` steps of `stream` and say what happened.

    The same seed gives the same trace, whatever the chunk size. `seeds` (how many from `seed` on,
    or a list) runs that many rollouts as one program. `measure` asks for more columns: collective,
    consensus, deviation, expected, virtual, average; left out, the collective loss is measured
    where clients have models of their own of one kind and it is cheap. `weights` (lambda_i of
    Agarwal et al. 2020, eq. (1)) say how much each client's losses count in personal regret.

    With a `folder` the trace goes to disk as it is made, a checkpoint is left there every so many
    seconds, and a call with the same arguments goes on from it. `plain` takes the unoptimised path;
    `debug` takes it uncompiled, and names the step and the client where a value stops being finite.

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
    wanted = links() if network is None else network
    asked = check.instance("simulate", "network", wanted, Network, "network(up=1)")
    wires = fitted(asked, stream.clients, steps)
    counted, chosen = _weights(weights, stream.clients), _seeds(seed, seeds)
    trip = 1 + int(np.max(wires.up) + np.max(wires.down))
    algorithm = settled(algorithm, problem, stream, steps=steps, seed=chosen[0], round_trip=trip)
    job = Job(algorithm, problem, stream, steps, chosen, wires, dtype, measured, counted)
    spread = layout(devices, stream.clients)
    with jax.enable_x64(dtype == "float64"):
        compiled = _compiled(job, spread, plain or debug)
        algorithm.codec.check(compiled.sent)
    path = None if folder is None else Path(folder)
    if path is not None:
        folders.claim(path, job.spec)
    with (
        contextlib.closing(Book(path, job.seeds, checkpoint)) as book,
        jax.enable_x64(dtype == "float64"),
    ):
        if debug:
            state = _debugged(job, compiled, book)
        else:
            state = _driven(job, compiled, spread, book, chunk, progress, plain)
        server, clients = jax.device_get(compiled.models(state))
        return _closed(job, book, compiled.sent, server, clients)


class Job(NamedTuple):
    """What is asked of the engine."""

    algorithm: Algorithm
    problem: Problem
    stream: Stream
    steps: int
    seeds: list[int]
    wires: Network
    dtype: str
    measure: tuple[str, ...]
    weights: np.ndarray | None

    @property
    def many(self) -> bool:
        """Whether there is an axis of seeds."""
        return len(self.seeds) > 1

    @property
    def keys(self) -> np.ndarray:
        """The key of each seed."""
        return np.stack([random.root(seed) for seed in self.seeds])

    @property
    def spec(self) -> dict[str, Any]:
        """The job as an experiment file."""
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

    def quick(self, plain: bool) -> bool:
        """Whether the run can go by rounds."""
        return not plain and self.wires.instant and self.algorithm.sync.period is not None


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


def _compiled(job: Job, spread: Layout, plain: bool) -> Program:
    syncs = None
    if not job.quick(plain):
        syncs = np.flatnonzero(job.algorithm.sync.after(np.arange(1, job.steps + 1))) + 1
    return program.choose(
        job.algorithm,
        job.problem,
        job.stream,
        measure=job.measure,
        weights=job.weights,
        dtype=job.dtype,
        many=job.many,
        layout=spread,
        wires=job.wires,
        syncs=syncs,
    )


def _stretches(
    job: Job, compiled: Program, after: int, chunk: int | None, plain: bool
) -> list[chunks.Stretch]:
    """The steps after `after`, cut for the device."""
    size, clients = job.problem.size, job.stream.clients
    shares = rounds.shares(compiled.stage)
    batched = job.quick(plain) and not shares and size <= chunks.KEPT
    most = chunk or chunks.budget(job.stream, size, len(job.seeds), batched)
    batched = batched and (job.algorithm.sync.period or 1) <= most  # else a round outgrows memory
    if not job.quick(plain):
        return chunks.by_flags(job.algorithm, job.steps, after, most)
    room = (
        chunks.room(compiled.heard, job.algorithm, job.keys, job.steps, clients) if shares else None
    )
    shape = rounds.Shape(0, 0, True, cohort=room, batched=batched)
    return chunks.by_rounds(job.algorithm, job.steps, after, most, shape)


def _driven(
    job: Job,
    compiled: Program,
    spread: Layout,
    book: Book,
    chunk: int | None,
    progress: bool | None,
    plain: bool,
) -> Any:
    """All stretches in turn: the host prepares the next while the device works on this one."""
    teams = [Team(job, seeds, compiled, spread) for seeds in workers.shared_out(job.seeds, spread)]
    stretches = _stretches(job, compiled, book.step, chunk, plain)
    with workers.pool(len(teams), job.dtype) as each:
        states = [compiled.begin(team.key) for team in teams]
        states = workers.parted(book.restored(workers.whole(states)), len(teams))
        title = job.algorithm.spec.name
        with progress_bar.bar(title, job.steps, book.step, progress) as reached:
            pieces = [team.ahead(stretches[0]) if stretches else None for team in teams]
            for stretch, following in zip(stretches, [*stretches[1:], None], strict=True):
                under_way = each(Team.advance, teams, states, pieces, [stretch] * len(teams))
                pieces = [team.ahead(following) if following else None for team in teams]
                done = under_way()
                states, rows = [state for state, _ in done], [row for _, row in done]
                last = following is None
                whole = functools.partial(workers.whole, states)
                book.write(workers.joined(rows), stretch.last, whole, last)
                reached(stretch.last)
    return workers.whole(states)


class Team:
    """Some of the seeds, as one program with what they know."""

    def __init__(self, job: Job, seeds: list[int], compiled: Program, spread: Layout):
        self.job = job._replace(seeds=seeds)
        self.many = job.many
        self.compiled, self.spread = compiled, spread
        keys = self.job.keys
        self.key = spread.put(keys if self.many else keys[0], None)
        self.known = spread.put(cast(self._known(), job.dtype), None)

    def _known(self) -> Any:
        """What the stream's samples are made from; what is drawn has the seeds' axis first."""
        stream, seeds = self.job.stream, self.job.seeds
        if stream.drawn is None or not self.many:
            return stream.known(seeds[0])
        each = [stream.drawn(seed) for seed in seeds]
        return stream.resident, jax.tree.map(lambda *x: np.stack(x), *each)

    def ahead(self, stretch: chunks.Stretch) -> Any:
        """The pieces of a stretch, on the device."""
        chunk = self.job.stream.chunk
        each = [chunk(seed, stretch.first, stretch.last) for seed in self.job.seeds]
        pieces = jax.tree.map(lambda *x: np.stack(x), *each) if self.many else each[0]
        return self.spread.put(cast(pieces, self.job.dtype), 2 if self.many else 1)

    def advance(self, state: Any, pieces: Any, stretch: chunks.Stretch) -> Any:
        """The state after a stretch, and its rows on the host."""
        first = jnp.int32(stretch.first)
        state, rows = self.compiled.advance(state, self.key, self.known, pieces, first, stretch.how)
        return state, jax.device_get(rows)


def _debugged(job: Job, compiled: Program, book: Book) -> Any:
    """All steps in turn, uncompiled, for the first seed."""
    if job.many or book.step:
        raise check.refuse("simulate", "debug", "have one seed and no run to resume", job.seeds)
    key, dtype = jnp.asarray(job.keys[0]), job.dtype
    resident = jax.device_put(cast(job.stream.known(job.seeds[0]), dtype))

    def pieces(t: int) -> Any:
        return jax.tree.map(lambda x: x[0], cast(job.stream.chunk(job.seeds[0], t, t), dtype))

    flags = np.asarray(job.algorithm.sync.after(np.arange(1, job.steps + 1)), bool)
    state, rows = debugger.walk(
        compiled.stage, job.wires, compiled.begin(key), key, resident, pieces, flags
    )
    book.write(program.gathered(rows), job.steps, lambda: state, last=True)
    return state


def _closed(job: Job, book: Book, sent: int, server: np.ndarray, clients: np.ndarray | None) -> Run:
    """The finished run; a message has `sent` numbers, a broadcast as many as the server's model."""
    model = {"server": server} | ({} if clients is None else {"clients": clients})
    if book.average is not None:
        mean = book.average / job.steps
        model["average"] = mean if job.many else mean[0]
    codec, word = job.algorithm.codec, 8 * np.dtype(job.dtype).itemsize
    told = server.shape[-1]
    summary = Summary(
        steps=job.steps,
        seeds=job.seeds,
        clients=job.stream.clients,
        size=job.problem.size,
        dtype=job.dtype,
        shared=job.algorithm.traits.decides_with_broadcast and job.wires.instant,
        uplink_bits=codec.bits(sent, word),
        uplink_bytes=codec.nbytes(sent, word),
        downlink_bits=float(word * told),
        downlink_bytes=word // 8 * told,
    )
    trace = book.sealed(model, summary._asdict())
    domain = common_domain(job.algorithm.domain, job.problem.domain)
    made = job.algorithm, job.problem, lambda: job.stream, domain
    return Run(job.spec, summary, trace, model, *made)
