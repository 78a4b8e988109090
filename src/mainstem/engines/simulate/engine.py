"""`simulate`: runs an algorithm on a stream in a compiled program, on one machine or many."""

import contextlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from mainstem import check
from mainstem.base import Algorithm, Problem, Stream
from mainstem.engines.run_context import broadcast_size
from mainstem.engines.simulate import hosts
from mainstem.engines.simulate.admission import common_domain
from mainstem.engines.simulate.job import Configuration, Job
from mainstem.engines.simulate.recorder import Recorder
from mainstem.engines.simulate.rollouts import debugged, run_chunks
from mainstem.engines.simulate.settings import admitted, links_of, settings_of
from mainstem.engines.simulate.thinning import Thinning
from mainstem.engines.simulate.tracked import Tracked, last_values
from mainstem.errors import Diverged, FinishedRun
from mainstem.parts import network as wired
from mainstem.parts import plain as plain_codec
from mainstem.run import Run, Summary, load
from mainstem.spec import digest, name_of
from mainstem.tracking.opening import Asked

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
    every: int = 1,
    track: Asked = None,
) -> Run:
    """Runs `algorithm` for `steps` steps of `stream` and returns the run.

    The same seed gives the same trace, whatever the chunk size. `seeds` (how many from `seed` on, or a list)
    runs that many rollouts as one program. `measure` asks for columns: collective, consensus, deviation,
    expected, virtual, average, scores (for AUC, F1 and log loss), predictions (for pinball loss and quantiles
    of the error), "loss per client", "loss per client every 10" (steps), clients (the loss and the metric of each,
    at every n-th step if there are more than a million numbers), default. By default, the collective loss is
    measured if the clients have models of their own, the problem is convex and not personal, and it is cheap.
    With `every`, a divisor of the steps, the trace has the means over blocks of so many steps: it is shorter, and
    sums and regret at the ends of the blocks are the same.
    `weights` (lambda_i of Agarwal et al. 2020, eq. (1)) are the weights of the clients' losses in personal regret.

    `track` writes the curves while the run goes on, as means over blocks of steps, a thousand of them at most: a
    tracker of `ms.tracking`, its name such as "tensorboard:logs" or "csv:losses.csv", or a list of these.

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
    check.at_least("simulate", "checkpoint", checkpoint, 0)
    found = settings_of(
        "simulate",
        stream,
        steps,
        seed,
        seeds,
        dtype,
        weights,
        devices,
        chunk,
        plain or debug,
        every,
    )
    wires = links_of("simulate", network, stream, found.steps)
    job = admitted((Configuration(algorithm, problem, wires),), stream, found, measure)
    path = None if folder is None else Path(folder)
    tracked = Tracked(track, steps, stream.clients)
    try:
        done = completed(
            job, path, checkpoint, lambda: name_of(job.algorithm), progress, debug, tracked
        )
    except FinishedRun:
        return load(Path(folder or ""), algorithm=job.algorithm, problem=problem, stream=stream)
    except BaseException:
        tracked.end()
        raise
    run = Run(
        *(job.spec, done.summaries[0], done.trace, done.models, job.algorithm, problem, stream),
        common_domain(job.algorithm.domain, problem.domain),
        path,
    )
    tracked.end(lambda: last_values(run))
    if run.diverged:
        warnings.warn(f"{run.name} {run.diverged}: a smaller step may help", Diverged, stacklevel=2)
    return run


class Completed(NamedTuple):
    """What a job has left; the first axis of each array is that of its rollouts, if there are several."""

    summaries: list[Summary]  # of each configuration
    trace: Mapping[str, np.ndarray]
    models: dict[str, np.ndarray]


def completed(
    job: Job,
    path: Path | None,
    checkpoint: float,
    title: Callable[[], str],
    progress: bool | None,
    debug: bool = False,
    tracked: Tracked | None = None,
) -> Completed:
    """Runs a job to its end; with a folder, from its last checkpoint on."""
    if hosts.count() > 1:
        hosts.same("simulation", fingerprint(job))
    several = len(job.configurations) > 1
    rollouts = [*range(job.rollouts)] if several else job.seeds
    thinning = Thinning(job.every, job.stream.clients)
    opened = Recorder(path, job.spec, rollouts, checkpoint, thinning, tracked)
    with jax.enable_x64(job.dtype == "float64"), contextlib.closing(opened) as recorder:
        if tracked is not None:
            tracked.begin(lambda: tracked_name(job, path), job.spec, recorder.step)
        program = job.program()
        sent = program.sent
        for algorithm in (one.algorithm for one in job.configurations):
            algorithm.codec.check(sent)
            if algorithm.downlink is not None:
                algorithm.downlink.check(broadcast_size(program.stage))
        state = (
            debugged(job, program, recorder)
            if debug
            else run_chunks(job, program, recorder, title, progress)
        )
        server, clients = jax.device_get(program.models(state))
        models = {"server": server} | ({} if clients is None else {"clients": clients})
        if recorder.average is not None:
            mean = recorder.average / job.steps
            models["average"] = mean if job.rollouts > 1 else mean[0]
        each = range(len(job.configurations))
        summaries = [_summary(job, n, recorder.diverged, sent, server.shape[-1]) for n in each]
        written: Any = shortened(summaries) if several else summaries[0]._asdict()
        return Completed(summaries, recorder.finish(models, written), models)


def shortened(summaries: Sequence[Summary]) -> dict[str, Any]:
    """The summaries of several configurations as one: what all have in common once, then what differs."""
    each = [one._asdict() for one in summaries]
    same = {k: v for k, v in each[0].items() if all(one[k] == v for one in each)}
    return same | {
        "configurations": [{k: it for k, it in one.items() if k not in same} for one in each]
    }


def fingerprint(job: Job) -> str:
    """A fingerprint of all that the job depends on."""
    return digest(job.spec())[:8]


def tracked_name(job: Job, path: Path | None) -> str:
    """The name of the run for trackers: that of its folder, or the algorithm's with a fingerprint."""
    if path is not None:
        return path.absolute().name
    return f"{name_of(job.algorithm)}-{fingerprint(job)}"


def _summary(
    job: Job, number: int, diverged: Mapping[int, tuple[int, list[int]]], sent: int, size: int
) -> Summary:
    """That of a configuration; an upload has `sent` numbers, a broadcast `size`."""
    algorithm, problem, wires = job.configurations[number]
    codec, word = algorithm.codec, 8 * np.dtype(job.dtype).itemsize
    down = algorithm.downlink or plain_codec()
    count = len(job.seeds)
    rollouts = (
        job.seeds if len(job.configurations) == 1 else range(number * count, (number + 1) * count)
    )
    broken = [
        [seed, *_named(*diverged[rollout])]
        for seed, rollout in zip(job.seeds, rollouts, strict=True)
        if rollout in diverged
    ]
    return Summary(
        steps=job.steps,
        seeds=job.seeds,
        clients=job.stream.clients,
        parameters=problem.parameters,
        dtype=job.dtype,
        shared=algorithm.traits.decides_with_broadcast and wires.level,
        uplink_bits=codec.bits(sent, word),
        uplink_bytes=codec.nbytes(sent, word),
        downlink_bits=down.bits(size, word),
        downlink_bytes=down.nbytes(size, word),
        diverged=sorted(broken),
        labels=None if job.stream.labels is None else list(job.stream.labels),
        every=job.every,
        names=None if job.stream.names is None else list(job.stream.names),
    )


def _named(step: int, clients: list[int]) -> list[int]:
    """Where a rollout diverged: the step, how many clients, and the first of them."""
    return [step, len(clients), *clients[:NAMED]]
