"""Checks that the arguments of `simulate` fit together, and chooses what is measured."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check
from mainstem.base import Algorithm, At, Domain, Flat, Problem, Stream
from mainstem.engines.run_context import check_broadcasts
from mainstem.engines.simulate.stage import MEASURES
from mainstem.errors import BadData, BadParameter
from mainstem.measure.predicted import PREDICTED
from mainstem.random import root
from mainstem.replay import first_samples
from mainstem.run.trace import OF_CLIENTS, PER_CLIENT, per_client
from mainstem.value import once

CHEAP = 10**7  # numbers touched per step up to which the collective loss is measured by default
DEFAULT, CLIENTS = "default", "clients"  # words for several measures
NUMBERS = 10**6  # in a column of the measure "clients", at most
FEWEST = 20  # steps that it has
PERIODS = (
    2 * 3 * 5 * 7
)  # hours of a day, days of a week: a thinned column must not see one hour of each day only


def admit(
    algorithm: Algorithm,
    problem: Problem,
    stream: Stream,
    steps: int,
    measure: Sequence[str] | None,
    every: int = 1,
    rollouts: int = 1,
) -> tuple[str, ...]:
    """Refuses arguments that do not fit together; returns the names of what will be measured."""
    check.instance("simulate", "algorithm", algorithm, Algorithm, "fedogd(step=0.1)")
    check.instance("simulate", "problem", problem, Problem, "problems.softmax(64, 10)")
    check.instance("simulate", "stream", stream, Stream, "streams.digits(clients=100)")
    if stream.steps is not None and steps > stream.steps:
        raise BadData(
            f"simulate: steps must be at most {stream.steps}, the end of the stream, got {steps}"
        )
    algorithm.participation.check(steps, stream.clients)
    domain = common_domain(algorithm.domain, problem.domain)
    domain.check(problem.parameters)
    check_broadcasts(algorithm, domain)
    _fits(problem, stream)
    if algorithm.checks_samples:
        algorithm.check(problem, jax.tree.map(np.asarray, first_samples(stream)), steps)
    if measure is not None:
        measure = _spelled_out(measure, algorithm, problem, stream, steps, every, rollouts)
    measures = _measures(algorithm, problem, stream, steps, measure)
    for name in measures:
        _in_blocks(name, every)
    return measures


def common_domain(of_algorithm: Domain, of_problem: Domain) -> Domain:
    """The domain of the models: both domains must be equal, or one of them unconstrained."""
    if of_problem.whole:
        return of_algorithm
    if not of_algorithm.whole and of_algorithm != of_problem:
        where = f"the algorithm projects on the {of_algorithm.title}"
        raise BadParameter(f"simulate: {where}, the problem is on the {of_problem.title}")
    return of_problem


def _fits(problem: Problem, stream: Stream) -> None:
    """Checks the samples, once: all rows of a dataset, all targets of a file, else those of step 1 and the
    largest class."""
    fine: set[Problem] = once(stream, "fits", set)
    if problem in fine:
        return
    largest, classes = stream.largest_class, problem.classes
    if largest is not None and classes is not None and largest >= classes:
        wanted = f"labels 0 to {classes - 1}, the stream has {largest}"
        raise BadData(f"{problem.call()[0]}: wants {wanted}")
    rows = stream.rows() or first_samples(stream)
    if rows.count is not None:  # only the clients that have a sample
        here = np.flatnonzero(np.asarray(rows.count) > 0)
        rows = jax.tree.map(lambda x: np.asarray(x)[here], rows)
    hidden = rows.hidden if stream.targets is None else stream.targets()
    problem.check(*jax.tree.map(np.asarray, (rows.shown, hidden)))
    fine.add(problem)


def _same_losses(problem: Problem, stream: Stream) -> None:
    """Refuses expected losses that belong to another problem, where their curvature shows it."""
    sample = jax.tree.map(lambda x: x[0], first_samples(stream))
    if problem.form is None or stream.expected is None:
        raise BadParameter("simulate: expected losses are for problems with quadratic losses")
    seen = problem.reveal(problem.decide(problem.init(root(0)), sample.shown, None), sample)  # type: ignore[arg-type]
    known, real = stream.expected(jnp.int32(1), jnp.int32(0)), problem.form(seen)
    shapes = np.shape(known.vector), np.shape(real.vector)
    curvatures = np.asarray(known.matrix), np.asarray(real.matrix)
    scalar = curvatures[0].ndim == 0 and curvatures[1].ndim == 0
    if shapes[0] != shapes[1] or (scalar and not np.allclose(*curvatures)):
        raise BadParameter(
            "simulate: the stream's expected losses are those of another problem: "
            f"curvature {curvatures[0]} in {shapes[0]}, not {curvatures[1]} in {shapes[1]}"
        )


def _measures(
    algorithm: Algorithm,
    problem: Problem,
    stream: Stream,
    steps: int,
    measure: Sequence[str] | None,
) -> tuple[str, ...]:
    if measure is None:
        return _default(algorithm, problem, stream)
    names = [name.replace(" ", "_") if isinstance(name, str) else name for name in measure]
    for name in names:
        column = per_client(name) if isinstance(name, str) else None
        if column is not None:
            known = [each + PER_CLIENT for each in ("loss", *_metrics(problem, stream))]
            check.one_of("simulate", "measure", column.of + PER_CLIENT, known)
            if column.every > steps:
                wanted = f"have every n-th step for n up to {steps}, the steps of the run"
                raise check.refuse("simulate", "measure", wanted, name)
        else:
            known = [*MEASURES, f"loss{PER_CLIENT}", DEFAULT, CLIENTS]
            check.one_of("simulate", "measure", name, known)
        if name in PREDICTED and not PREDICTED[name].fits(problem):
            wanted = f"leave out {name}: they are of {PREDICTED[name].of}"
            raise check.refuse("simulate", "measure", wanted, name)
        if name in ("expected", "virtual") and stream.expected is None:
            raise check.refuse(
                "simulate", "measure", f"leave out {name}: the stream knows no expectation", name
            )
        if name == "deviation" and stream.minimiser is None:
            raise check.refuse(
                "simulate", "measure", "leave out deviation: the stream knows no minimiser", name
            )
        if name in ("expected", "virtual"):
            _same_losses(problem, stream)
    return tuple(sorted(set(names)))


def _spelled_out(
    measure: Sequence[str],
    algorithm: Algorithm,
    problem: Problem,
    stream: Stream,
    steps: int,
    every: int,
    rollouts: int,
) -> Sequence[str]:
    """The measures with what "default" and "clients" stand for."""
    if isinstance(measure, str) or not isinstance(measure, Sequence):
        raise check.refuse("simulate", "measure", 'be a list such as ["collective"]', measure)
    found: list[str] = []
    for name in measure:
        if name == DEFAULT:
            found += _default(algorithm, problem, stream)
        elif name == CLIENTS:
            found += _of_clients(problem, stream, steps, every, rollouts)
        else:
            found.append(name)
    return found


def _default(algorithm: Algorithm, problem: Problem, stream: Stream) -> tuple[str, ...]:
    """What is measured by default."""
    pairs = stream.clients * (1 if problem.form else stream.clients)
    cheap = problem.convex and not problem.personal and pairs * problem.parameters <= CHEAP
    return ("collective",) if cheap and not algorithm.traits.decides_with_broadcast else ()


def _of_clients(
    problem: Problem, stream: Stream, steps: int, every: int, rollouts: int
) -> tuple[str, ...]:
    """The loss and the metric of each client, at every n-th step if there are many numbers; nothing for more
    clients than fit."""
    most = max(1, NUMBERS // (stream.clients * rollouts))  # steps
    apart = -(-steps // (every * most))
    while math.gcd(apart, PERIODS) > 1:
        apart += 1
    apart *= every
    if apart > every and steps // apart < FEWEST:
        return ()
    known = ["loss", *_metrics(problem, stream)]
    columns = [each + PER_CLIENT for each in OF_CLIENTS if each in known]
    return tuple(f"{each}_every_{apart}" if apart > 1 else each for each in columns)


def _in_blocks(name: str, every: int) -> None:
    """Refuses numbers of each client at steps that a trace of blocks of `every` steps does not have."""
    columns = PREDICTED[name][:2] if name in PREDICTED else [name]
    if all((each := per_client(column)) is None or each.every % every == 0 for column in columns):
        return
    wanted = f"have no numbers of each client but of every {every}-th step (every={every}), or a multiple of it"
    raise check.refuse("simulate", "measure", wanted, name)


def _metrics(problem: Problem, stream: Stream) -> list[str]:
    """The names of a problem's metrics."""
    sample = jax.tree.map(lambda x: x[0], first_samples(stream))
    vectors, key = Flat(problem), jnp.asarray(root(0))
    at = At(jnp.int32(1), jnp.int32(0), key)
    return sorted(jax.eval_shape(lambda: vectors.one(vectors.init(key), sample, at)[2]))
