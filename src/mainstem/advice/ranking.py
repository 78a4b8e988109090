"""Ranking of algorithms: `advise` chooses an algorithm and its parameters for a stream and an uplink budget."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from mainstem import algorithms, check, parts
from mainstem.advice.auto_step import ALONE, Way, best_step, predicted, way_of, with_steps
from mainstem.advice.own_parts import Parts, pilot_of_parts, plans
from mainstem.advice.pilot import Pilot, run_pilot
from mainstem.base import MODELS, Algorithm, Problem, Step, Stream
from mainstem.parts import constant
from mainstem.spec import name_of, plain
from mainstem.theory import plan
from mainstem.value import Value, parts_of, shown


class Row(NamedTuple):
    """One candidate: an algorithm with its predicted regret and its uplink."""

    algorithm: Algorithm  # ready for `simulate`
    regret: float  # predicted: mean over clients, summed over the steps; inf: no prediction
    uplink_bits: float  # of all clients, over all steps
    uplink_share: float  # of plain uploads by all clients at every step
    why: str

    @property
    def parameters(self) -> str:
        """The arguments of the algorithm, as text."""
        return ", ".join(f"{k}={_shown(v)}" for k, v in self.algorithm.call()[1].items())


class Advice(NamedTuple):
    """Candidate algorithms for a stream, the best first, and the constants that were measured."""

    rows: list[Row]
    pilot: Pilot | Parts

    @property
    def best(self) -> Algorithm:
        """The algorithm with rank 1."""
        return self.rows[0].algorithm

    def table(self) -> list[dict[str, Any]]:
        """One dictionary per candidate; its parameters are as in an experiment file."""
        return [
            {
                "algorithm": name_of(row.algorithm),
                "predicted_regret": row.regret if math.isfinite(row.regret) else None,
                "uplink_bits": row.uplink_bits,
                "uplink_share": row.uplink_share,
                "parameters": {k: v for k, v in plain(row.algorithm).items() if k != "name"},
                "why": row.why,
            }
            for row in self.rows
        ]

    def __str__(self) -> str:
        lines = [
            f"{name_of(row.algorithm):10} regret {row.regret:10.4g}   {row.uplink_bits:9.3g} bits up"
            f"   {row.parameters}   ({row.why})"
            for row in self.rows
        ]
        return "\n".join(lines)


def advise(
    problem: Problem,
    stream: Stream,
    *,
    budget: float,
    steps: int,
    seed: int = 0,
    also: Sequence[Algorithm] = (),
) -> Advice:
    """Ranks algorithms for `steps` steps of `stream` with a share `budget` of the plain uplink, best first.

    Measures the constants of the theorems on the first steps of the stream, sets every algorithm's
    step from them and ranks by predicted regret. Predictions are for small steps and stationary
    streams: no guarantee. For networks nothing is predicted, and the order is that of the bounds'
    constants (Kwon et al. 2023, Table 1). `also` contains further algorithms, which are ranked with the
    others whatever uplink they use; a step that is "auto" is chosen for them.

    >>> import mainstem as ms
    >>> problem, stream = ms.problems.quadratic(5), ms.streams.sea_quadratic(clients=20, dimension=5)
    >>> advice = ms.advise(problem, stream, budget=0.1, steps=500)
    >>> advice.best.codec
    quantiser(levels=17)
    """
    check.instance("advise", "problem", problem, Problem, "softmax(features=64, classes=10)")
    check.instance("advise", "stream", stream, Stream, "digits(clients=100)")
    steps = check.integer("advise", "steps", steps, least=1, most=stream.steps)
    budget = check.positive("advise", "budget", budget)
    if budget > 1:
        raise check.refuse("advise", "budget", "lie in (0, 1]", budget)
    if problem.personal and also:
        wanted = "be left out where clients have an own part: nothing is predicted for others there"
        raise check.refuse("advise", "also", wanted, list(also))
    if problem.personal:
        return _with_own_parts(problem, stream, budget, steps, seed)
    ways = [way_of(own, stream.clients, problem.parameters, steps) for own in also]  # or refused
    pilot = run_pilot(problem, stream, steps, seed=seed)
    rows = []
    for make, why in _candidates(problem, stream.clients, budget, steps):
        way = way_of(make(1.0), stream.clients, problem.parameters, steps)
        step = _short(best_step(way, pilot, steps))
        algorithm = make(step)
        rows.append(_row(algorithm, step, way, pilot, steps, why))
    for own, way in zip(also, ways, strict=True):
        step = _short(best_step(way, pilot, steps))
        chosen = with_steps(own, constant(step))
        taken = next((it.always for _, it in parts_of(chosen) if isinstance(it, Step)), None)
        rows.append(_row(chosen, float(taken or step), way, pilot, steps, "your own"))
    rows.sort(key=lambda row: (row.regret, _alpha(row, pilot, steps)))
    return Advice(rows, pilot)


def _with_own_parts(
    problem: Problem, stream: Stream, budget: float, steps: int, seed: int
) -> Advice:
    found = pilot_of_parts(problem, stream, steps, seed=seed)
    plain = 32 * found.shared_parameters * stream.clients * steps
    rows = [
        Row(each.algorithm, each.regret, each.messages * plain, each.messages, each.why)
        for each in plans(found, budget, steps)
    ]
    return Advice(sorted(rows, key=lambda row: row.regret), found)


def _candidates(
    problem: Problem, clients: int, budget: float, steps: int
) -> Iterator[tuple[Any, str]]:
    """(step -> algorithm, why), each within the budget."""
    planned = plan(budget=budget, parameters=problem.parameters)
    period = math.ceil(1 / budget - 1e-9)
    bounded = not problem.domain.whole
    mirror: dict[str, Any] = {"mirror": parts.euclidean(problem.domain)} if bounded else {}
    if not bounded:
        if budget == 1:
            yield algorithms.fedogd, "all clients upload at every step, unrounded"
        yield (
            lambda step: algorithms.ofediq(
                step, rate=planned.rate, levels=planned.levels, blocks=planned.blocks
            ),
            f"planned for the budget: {100 * planned.rate:.3g} % of the clients upload at a step, "
            f"in {planned.levels} levels",
        )
        if budget < 1:
            yield (
                lambda step: algorithms.ofedavg(step, rate=budget),
                f"{100 * budget:.3g} % of the clients upload at a step, unrounded",
            )
        if 1 < period <= steps:
            yield (
                lambda step: algorithms.ofediq(step, period=period),
                f"all clients upload every {period} steps",
            )
    if period <= steps:
        yield (
            lambda step: algorithms.fedomd(step, sync=parts.every(period), **mirror),
            f"clients step alone and average every {period} steps"
            if period > 1
            else "clients average at every step",
        )
    sampled = int(budget * clients)
    if bounded and budget < 1 and sampled >= 1:
        yield (
            lambda step: algorithms.fedomd(step, participation=parts.exactly(sampled), **mirror),
            f"the models of {sampled} clients are averaged at every step",
        )
    yield lambda step: algorithms.independent(step, **mirror), "no uploads"


def _row(algorithm: Algorithm, step: float, way: Way, pilot: Pilot, steps: int, why: str) -> Row:
    syncs = 0 if way.kind == ALONE else steps // way.period
    bits = algorithm.codec.bits(pilot.parameters, 32) * way.heard * syncs
    share = bits / (32 * pilot.parameters * pilot.clients * steps)
    return Row(algorithm, predicted(step, way, pilot, steps), bits, share, why)


def _alpha(row: Row, pilot: Pilot, steps: int) -> float:
    """The noise of an update, as in Kwon et al. 2023, Table 1; the order if nothing is predicted."""
    way = way_of(row.algorithm, pilot.clients, pilot.parameters, steps)
    return way.noise * (way.period if way.kind == MODELS else 1)


def _shown(given: Any) -> str:
    """A part as its constructor call, a number with few digits."""
    if isinstance(given, Value) and isinstance(given.short(), Value):
        name, arguments = given.call()
        return f"{name}({', '.join(f'{k}={_shown(it)}' for k, it in arguments.items())})"
    brief = given.short() if isinstance(given, Value) else given
    return f"{brief:.4g}" if isinstance(brief, float) else shown(brief)


def _short(step: float) -> float:
    """The step, rounded to three digits."""
    return float(f"{step:.3g}")
