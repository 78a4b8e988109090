"""`advise`: which algorithm, with which parameters, for a stream and a traffic budget."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from mainstem import algorithms, check, parts
from mainstem.advice.auto_step import ALONE, Way, best_step, predicted, way_of, with_steps
from mainstem.advice.own_parts import Parts, look_at_parts, plans
from mainstem.advice.pilot import Pilot, look
from mainstem.base import MODELS, Algorithm, Problem, Step, Stream
from mainstem.parts import constant
from mainstem.spec import name_of
from mainstem.theory import plan
from mainstem.value import Value, parts_of, shown


class Row(NamedTuple):
    """One way to learn this stream within the budget."""

    algorithm: Algorithm  # ready for `simulate`
    regret: float  # predicted: mean over clients, summed over the horizon; inf: no prediction
    uplink_bits: float  # all clients, the whole horizon
    uplink_share: float  # of everyone sending plainly at every step
    why: str

    @property
    def parameters(self) -> str:
        """What the algorithm was made with."""
        return ", ".join(f"{k}={_shown(v)}" for k, v in self.algorithm.call()[1].items())


class Advice(NamedTuple):
    """Ways to learn a stream, the best first, and what was measured to find them."""

    rows: list[Row]
    pilot: Pilot | Parts

    @property
    def best(self) -> Algorithm:
        """The algorithm to take."""
        return self.rows[0].algorithm

    def table(self) -> list[dict[str, Any]]:
        """A line for each way."""
        return [
            {
                "algorithm": name_of(row.algorithm),
                "predicted_regret": row.regret if math.isfinite(row.regret) else None,
                "uplink_bits": row.uplink_bits,
                "uplink_share": row.uplink_share,
                "parameters": row.parameters,
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
    horizon: int,
    seed: int = 0,
    also: Sequence[Algorithm] = (),
) -> Advice:
    """Ways to learn `stream` for `horizon` steps with a share `budget` of the plain uplink, best first.

    Looks at the first steps of the stream, measures the constants of the theorems there, sets every
    algorithm's step by them and ranks by the regret that they predict. Predictions are for small
    steps and stationary streams: no guarantee. For networks nothing is predicted, and the order is
    that of the bounds' constants (Kwon et al. 2023, Table 1). `also` are algorithms of your own, ranked
    beside the others whatever they spend; a step that is "auto" is chosen for them.

    >>> import mainstem as ms
    >>> problem, stream = ms.problems.softmax(64, 10), ms.streams.digits(clients=1000)
    >>> advice = ms.advise(problem, stream, budget=0.01, horizon=500)
    >>> advice.best.codec
    quantiser(levels=3, blocks=14)
    """
    check.instance("advise", "problem", problem, Problem, "softmax(features=64, classes=10)")
    check.instance("advise", "stream", stream, Stream, "digits(clients=100)")
    horizon = check.integer("advise", "horizon", horizon, least=1, most=stream.steps)
    budget = check.positive("advise", "budget", budget)
    if budget > 1:
        raise check.refuse("advise", "budget", "lie in (0, 1]", budget)
    if problem.personal and also:
        wanted = "be left out where clients have an own part: nothing is predicted for others there"
        raise check.refuse("advise", "also", wanted, list(also))
    if problem.personal:
        return _with_own_parts(problem, stream, budget, horizon, seed)
    pilot = look(problem, stream, horizon, seed=seed)
    rows = []
    for make, why in _candidates(problem, stream.clients, budget, horizon):
        way = way_of(make(1.0), stream.clients, problem.size, horizon)
        step = _short(best_step(way, pilot, horizon))
        algorithm = make(step)
        rows.append(_row(algorithm, step, way, pilot, horizon, why))
    for own in also:
        way = way_of(own, stream.clients, problem.size, horizon)
        step = _short(best_step(way, pilot, horizon))
        chosen = with_steps(own, constant(step))
        taken = next((it.always for _, it in parts_of(chosen) if isinstance(it, Step)), None)
        rows.append(_row(chosen, float(taken or step), way, pilot, horizon, "your own"))
    rows.sort(key=lambda row: (row.regret, _alpha(row, pilot, horizon)))
    return Advice(rows, pilot)


def _with_own_parts(
    problem: Problem, stream: Stream, budget: float, horizon: int, seed: int
) -> Advice:
    found = look_at_parts(problem, stream, horizon, seed=seed)
    plain = 32 * found.shared_parameters * stream.clients * horizon
    rows = [
        Row(each.algorithm, each.regret, each.messages * plain, each.messages, each.why)
        for each in plans(found, budget, horizon)
    ]
    return Advice(sorted(rows, key=lambda row: row.regret), found)


def _candidates(
    problem: Problem, clients: int, budget: float, horizon: int
) -> Iterator[tuple[Any, str]]:
    """(step -> algorithm, why), each within the budget."""
    planned = plan(budget=budget, parameters=problem.size)
    rate = planned.rate * min(1, budget / planned.spent)  # a small model cannot be cut into blocks
    period = math.ceil(1 / budget - 1e-9)
    bounded = not problem.domain.whole
    mirror: dict[str, Any] = {"mirror": parts.euclidean(problem.domain)} if bounded else {}
    if not bounded:
        if budget == 1:
            yield algorithms.fedogd, "everybody speaks, at once and exactly"
        yield (
            lambda step: algorithms.ofediq(
                step, rate=rate, levels=planned.levels, blocks=planned.blocks
            ),
            f"planned for the budget: {100 * rate:.3g} % of the clients speak at a step, "
            f"in {planned.levels} levels",
        )
        if budget < 1:
            yield (
                lambda step: algorithms.ofedavg(step, rate=budget),
                f"{100 * budget:.3g} % of the clients speak at a step, exactly",
            )
        if 1 < period <= horizon:
            yield (
                lambda step: algorithms.ofediq(step, period=period),
                f"everybody speaks every {period} steps",
            )
    if period <= horizon:
        yield (
            lambda step: algorithms.fedomd(step, sync=parts.every(period), **mirror),
            f"clients step alone and average every {period} steps"
            if period > 1
            else "clients average at every step",
        )
    heard = int(budget * clients)
    if bounded and budget < 1 and heard >= 1:
        yield (
            lambda step: algorithms.fedomd(step, participation=parts.exactly(heard), **mirror),
            f"the models of {heard} clients are averaged at every step",
        )
    yield lambda step: algorithms.independent(step, **mirror), "nobody speaks"


def _row(algorithm: Algorithm, step: float, way: Way, pilot: Pilot, horizon: int, why: str) -> Row:
    syncs = 0 if way.kind == ALONE else horizon // way.gap
    bits = algorithm.codec.bits(pilot.parameters, 32) * way.heard * syncs
    share = bits / (32 * pilot.parameters * pilot.clients * horizon)
    return Row(algorithm, predicted(step, way, pilot, horizon), bits, share, why)


def _alpha(row: Row, pilot: Pilot, horizon: int) -> float:
    """Where nothing is predicted: how noisy a move is, as in Kwon et al. 2023, Table 1."""
    way = way_of(row.algorithm, pilot.clients, pilot.parameters, horizon)
    return way.noise * (way.gap if way.kind == MODELS else 1)


def _shown(given: Any) -> str:
    """A part by how it is made, a number in few digits."""
    if isinstance(given, Value) and isinstance(given.short(), Value):
        name, arguments = given.call()
        return f"{name}({', '.join(f'{k}={_shown(it)}' for k, it in arguments.items())})"
    brief = given.short() if isinstance(given, Value) else given
    return f"{brief:.4g}" if isinstance(brief, float) else shown(brief)


def _short(step: float) -> float:
    """Three digits are enough."""
    return float(f"{step:.3g}")
