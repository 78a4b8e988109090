"""Regret: the excess loss over the best model in hindsight, with a certificate of that model."""

import numbers
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from mainstem import check, progress
from mainstem.base import Domain, Problem, Stream
from mainstem.errors import MainstemError
from mainstem.measure.certificate import certified
from mainstem.measure.comparators import comparator
from mainstem.measure.question import Hindsight, Question

Comparator = Callable[[str, Question, list[int], np.ndarray | None], Hindsight]

CURVE = 20  # prefixes of a regret curve
KINDS = {
    "global": "loss",
    "collective": "collective",
    "dynamic": "loss",
    "expected": "expected",
    "personal": "loss",
    "virtual": "virtual",
}
EQUAL = {  # if all clients have one model: the column that has the same losses
    "collective": "loss",
    "expected": "virtual",
    "virtual": "expected",
}


class Regret(NamedTuple):
    """Regret at some prefixes: sums over steps of means over clients (times K: Kwon et al. 2023, eq. (3))."""

    kind: str
    steps: np.ndarray  # the prefixes
    values: np.ndarray  # [prefixes], or [seeds, prefixes]
    gaps: np.ndarray  # an upper bound on the comparator's loss minus the true minimum
    error: np.ndarray  # standard error of a sampled loss; 0 if the loss is exact
    params: np.ndarray  # the best model for the last prefix (of the last seed)
    title: str  # "best", and the set over which the model is
    note: str  # what else the certificate depends on

    @property
    def statement(self) -> str:
        """The set over which the model is the best, and the largest gap of a seed at the last prefix."""
        return certified(self.title, float(np.max(self.gaps[..., -1])), self.note)

    def __float__(self) -> float:
        return float(np.mean(self.values[..., -1]))

    def __str__(self) -> str:
        interval = 1.96 * float(np.mean(self.error[..., -1]))
        spread = f" ± {interval:.3g}" if interval else ""
        found = f"{self.kind} regret {float(self):.6g}{spread} at step {self.steps[-1]}"
        return f"{found}, against the {self.statement}"


def regret_of(
    trace: Mapping[str, np.ndarray],
    problem: Problem,
    stream: Stream,
    domain: Domain,
    *,
    start: np.ndarray,
    seeds: list[int],
    shared: bool,
    steps: int,
    every: int,
    at: Sequence[int] | str | None,
    kind: str | None,
    radius: float,
    weights: np.ndarray | None,
    solve: Comparator = comparator,
) -> Regret:
    """The regret of a run with this trace; see `Run.regret`. `solve` finds the best models of a seed."""
    if problem.informative is not None:
        raise MainstemError(
            "regret: what is seen depends on what was decided: see measure.bandit_regret(run) and "
            "measure.policy_value(run)"
        )
    chosen = _kind(trace, kind, shared, problem.personal)
    prefixes = _prefixes(at, steps, every)
    rows = np.array(prefixes) // every - 1
    starts = np.atleast_2d(start)
    if not np.isfinite(starts).all():
        raise MainstemError(
            "regret: the run diverged, its final model is not finite: take a smaller step"
        )
    losses = trace[_column(trace, chosen, shared)]
    spent = every * np.cumsum(losses, axis=1, dtype=np.float64)[:, rows]
    expected = chosen in ("expected", "virtual")
    several = seeds[:1] if expected else seeds  # expected losses are the same for every seed
    questions = [
        Question(problem, stream, domain, seed, radius, starts[n], expected)
        for n, seed in enumerate(several)
    ]
    bests = _solved(lambda each: solve(chosen, each, prefixes, weights), questions)
    bests *= len(seeds) // len(bests)
    values = spent - np.stack([best.values for best in bests])
    gaps = np.stack([best.gaps for best in bests])
    error = every * _error(trace, chosen, rows, values.shape)
    if len(seeds) == 1:
        values, gaps, error = values[0], gaps[0], error[0]
    last = bests[-1]
    found = values, gaps, error, last.params
    return Regret(chosen, np.array(prefixes), *found, last.title, last.note)


def _solved(solve: Callable[[Question], Hindsight], questions: list[Question]) -> list[Hindsight]:
    """The answers, with a progress bar; after the first, which compiles for all, several at a time."""
    with progress.bar(
        lambda: "regret", len(questions), 0, None if len(questions) > 1 else False
    ) as reached:
        found = [solve(questions[0])]
        reached(1)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for each in pool.map(solve, questions[1:]):
                found.append(each)
                reached(len(found))
    return found


def _column(trace: Mapping[str, np.ndarray], kind: str, shared: bool) -> str:
    """The column of the losses that a kind of regret sums up."""
    if kind == "personal" and "weighted" in trace:
        return "weighted"
    if kind == "dynamic" and not shared:
        return KINDS["collective"]
    if shared and KINDS[kind] not in trace:
        return EQUAL.get(kind, KINDS[kind])
    return KINDS[kind]


def _error(trace: Any, kind: str, rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The standard error of a sampled collective loss."""
    if kind != "collective" or "collective_error" not in trace:
        return np.zeros(shape)
    return np.asarray(np.sqrt(np.cumsum(trace["collective_error"] ** 2, axis=1))[:, rows])


def _kind(trace: Mapping[str, np.ndarray], kind: str | None, shared: bool, personal: bool) -> str:
    if kind is None:
        return default_kind(trace, shared, personal)
    check.one_of("regret", "kind", kind, list(KINDS))
    if kind == "global" and not shared:
        raise MainstemError(
            "regret: there is no global model, the clients have models of their own"
        )
    if kind == "dynamic" and not shared and "collective" not in trace:
        raise MainstemError(
            'regret: dynamic regret of models of their own: simulate(..., measure=["collective"])'
        )
    if _column(trace, kind, shared) not in trace:
        raise MainstemError(f'regret: {kind} was not recorded: simulate(..., measure=["{kind}"])')
    return kind


def default_kind(trace: Mapping[str, np.ndarray], shared: bool, personal: bool) -> str:
    """The kind of regret of a run if none is asked for."""
    if personal:
        return "personal"
    if "collective" in trace:
        return "collective"
    if shared:
        return "global"
    raise MainstemError(
        'regret: the clients have models of their own: simulate(..., measure=["collective"])'
    )


def _prefixes(at: Sequence[int] | str | None, steps: int, every: int) -> list[int]:
    """The prefixes, which end with a block of `every` steps."""
    if at is None:
        return [steps]
    if isinstance(at, str):
        check.one_of("regret", "at", at, ["all", "curve"])
        blocks = steps // every
        count = blocks if at == "all" else min(blocks, CURVE)
        return [every * (blocks * n // count) for n in range(1, count + 1)]
    asked = [at] if isinstance(at, numbers.Integral) else list(at)
    if not asked:
        raise check.refuse("regret", "at", "name at least one step", at)
    found = sorted(check.integer("regret", "at", t, least=1, most=steps) for t in asked)
    for t in found:
        if t % every:
            wanted = f"be multiples of {every}: the trace has means over {every} steps"
            raise check.refuse("regret", "at", wanted, t)
    return found
