"""`sweep`: runs the points of a grid as few compiled programs, over configurations and seeds at once."""

import functools
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import jax
import numpy as np

from mainstem import check
from mainstem.base import Algorithm, Problem, Stream
from mainstem.engines.simulate import chunks
from mainstem.engines.simulate.admission import common_domain
from mainstem.engines.simulate.engine import Completed, completed, fingerprint
from mainstem.engines.simulate.job import Configuration, Job
from mainstem.engines.simulate.settings import admitted, links_of, settings_of
from mainstem.errors import BadParameter, Diverged, FinishedRun, OnEdge
from mainstem.parts import network as wired
from mainstem.run import Run, Summary
from mainstem.run import folder as folders
from mainstem.run.swept import Sweep, edge_warning, first_curve
from mainstem.spec import name_of

Make = Callable[..., tuple[Algorithm, Problem] | tuple[Algorithm, Problem, wired]]


def sweep(
    make: Make,
    grid: Mapping[str, Sequence[Any]],
    stream: Stream,
    *,
    steps: int,
    seed: int = 0,
    seeds: int | Sequence[int] | None = None,
    y: str | None = None,
    network: wired = wired(),
    dtype: str = "float32",
    measure: Sequence[str] | None = (),
    folder: str | Path | None = None,
    checkpoint: float = 10.0,
    chunk: int | None = None,
    devices: int | Sequence[Any] | None = None,
    progress: bool | None = None,
    every: int = 1,
) -> Sweep:
    """Runs `make(**point)`, an algorithm and a problem, for each point of the `grid` and each seed.

    The points that differ in numbers alone (steps, rates, ridge, radius, ...) are one program, over points and
    seeds at once. `make` may also give a network as the third, so that delays vary. Each point has the run that
    `simulate` would give. `y` is the curve
    or the column that is compared (default: the first of accuracy, mse and loss). The other arguments are those
    of `simulate`. With a `folder`, the same call resumes a sweep that was interrupted, and a larger grid reuses
    the blocks of points that it has in common.

    >>> import mainstem as ms
    >>> stream = ms.streams.digits(clients=20)
    >>> def make(step):
    ...     return ms.fedogd(step), ms.problems.softmax(64, 10)
    >>> found = ms.sweep(make, {"step": [0.01, 0.5, 50.0]}, stream, steps=60)
    >>> len(found), found.best["step"], found.edges
    (3, 0.5, [])
    """
    axes = _axes(grid)
    check.at_least("sweep", "checkpoint", checkpoint, 0)
    found = settings_of(
        "sweep", stream, steps, seed, seeds, dtype, None, devices, chunk, False, every
    )
    usual = functools.partial(links_of, "sweep", stream=stream, steps=found.steps)
    points = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    made = [_made(make, point, usual, network) for point in points]
    runs: dict[int, Run] = {}
    for group in _alike(made):
        job = admitted([made[n] for n in group], stream, found, measure)
        for block in _blocks(job):
            part = job.only(block)
            title = f"{name_of(job.algorithm)} ({len(runs)} of {len(points)} points done)"
            done = _done(part, folder, checkpoint, functools.partial(str, title), progress)
            for n, run in zip(block, _runs(part, done), strict=True):
                runs[group[n]] = run
    ordered = [runs[n] for n in range(len(points))]
    swept = Sweep(axes, points, ordered, y or first_curve(ordered[0]))
    ordered[0].curve(swept.y)  # refuses names that it does not have
    if swept.edges:
        warnings.warn(f"sweep: {edge_warning(swept)}", OnEdge, stacklevel=2)
    return swept


def _axes(grid: Mapping[str, Sequence[Any]]) -> dict[str, tuple[Any, ...]]:
    """The values of each parameter, in increasing order where they are numbers."""
    wanted = 'name the values of each parameter, such as {"step": [0.1, 1.0]}'
    if not isinstance(grid, Mapping) or not grid:
        raise check.refuse("sweep", "grid", wanted, grid)
    axes = {}
    for name, values in grid.items():
        if (
            isinstance(values, str)
            or not isinstance(values, Sequence | np.ndarray)
            or not len(values)
        ):
            raise check.refuse("sweep", f"grid[{name!r}]", "be a list of values", values)
        listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
        numbers = all(isinstance(each, Real) and not isinstance(each, bool) for each in listed)
        axes[name] = tuple(sorted(listed) if numbers else listed)
        repeated = next((each for each in listed if listed.count(each) > 1), None)
        if repeated is not None:
            raise check.refuse("sweep", f"grid[{name!r}]", "have each value once", repeated)
    return axes


def _made(
    make: Make, point: Mapping[str, Any], fitted: Callable[[wired], wired], network: wired
) -> Configuration:
    """The configuration of a point; the delays are those of `network` unless `make` gives others."""
    try:
        found = make(**point)
        wires = fitted(found[2] if isinstance(found, tuple) and len(found) == 3 else network)
    except BadParameter as error:
        raise BadParameter(f"sweep: at {_words(point)}: {error}", error.parameter) from None
    if not isinstance(found, tuple) or len(found) not in (2, 3):
        wanted = "return an algorithm and a problem, and a network if it varies"
        raise check.refuse("sweep", "make", wanted, found)
    check.instance("sweep", "make", found[0], Algorithm, "fedogd(step=0.1) and a problem")
    check.instance("sweep", "make", found[1], Problem, "an algorithm and problems.softmax(64, 10)")
    return Configuration(*found[:2], wires)


def _words(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {given!r}" for name, given in point.items())


def _alike(made: Sequence[Configuration]) -> list[list[int]]:
    """The numbers of the configurations that can share a program."""
    groups: dict[Any, list[int]] = {}
    for n, each in enumerate(made):
        shapes = tuple(np.shape(leaf) for leaf in jax.tree.leaves(each))
        alone = (
            () if jax.tree.leaves(each[:2]) else (n,)
        )  # without numbers there is nothing to stack
        groups.setdefault((jax.tree.structure(each), shapes, alone), []).append(n)
    return list(groups.values())


def _blocks(job: Job) -> Iterator[range]:
    """The configurations in blocks that fit in memory, of equal size where possible: each size is compiled
    once."""
    most = max(1, chunks.rollouts_at_once(job.stream, job.problem.parameters) // len(job.seeds))
    first = 0
    for size in chunks.even(len(job.configurations), most):
        yield range(first, first + size)
        first += size


def _done(
    job: Job,
    folder: str | Path | None,
    checkpoint: float,
    title: Callable[[], str],
    progress: bool | None,
) -> Completed:
    """The block's rollouts, computed or read from its folder, whose name has a fingerprint of all they depend
    on."""
    if folder is None:
        return completed(job, None, checkpoint, title, progress)
    path = Path(folder) / f"{name_of(job.algorithm)}-{fingerprint(job)}"
    try:
        return completed(job, path, checkpoint, title, progress)
    except FinishedRun:
        _, summary, models, trace = folders.read(path)
    each = [summary | one for one in summary.get("configurations", [{}])]
    summaries = [
        Summary(**{name: one[name] for name in Summary._fields if name in one}) for one in each
    ]
    return Completed(summaries, trace, models)


def _runs(job: Job, done: Completed) -> Iterator[Run]:
    """The run of each configuration."""
    count = len(job.seeds)
    for n, (algorithm, problem, _) in enumerate(job.configurations):
        alone = job.only([n])
        trace, models = done.trace, done.models
        if len(job.configurations) > 1:
            rollouts = slice(n * count, (n + 1) * count)
            trace = Rollouts(trace, rollouts)
            models = {name: x[rollouts] if job.many else x[n] for name, x in models.items()}
        summary, domain = done.summaries[n], common_domain(algorithm.domain, problem.domain)
        run = Run(alone.spec, summary, trace, models, algorithm, problem, job.stream, domain)
        if run.diverged:
            warnings.warn(f"{algorithm} {run.diverged}", Diverged, stacklevel=3)
        yield run


class Rollouts(Mapping[str, np.ndarray]):
    """Some rollouts of a trace."""

    def __init__(self, trace: Mapping[str, np.ndarray], which: slice):
        self._trace, self._which = trace, which

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)

    def __getitem__(self, name: str) -> np.ndarray:
        return self._trace[name][self._which]

    def __iter__(self) -> Iterator[str]:
        return iter(self._trace)

    def __len__(self) -> int:
        return len(self._trace)
