"""A run beside the theorem that speaks of it: what was measured, and the bound, in the theorem's units."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mainstem.base import Falling
from mainstem.errors import MainstemError
from mainstem.measure.prefix import Prefix
from mainstem.theory.bound import Bound, Rate

POINTS = 12  # of a curve


class Beside(NamedTuple):
    """What was measured, and what a theorem says of it, in the theorem's units."""

    measured: np.ndarray  # [seeds, prefixes]
    bound: Bound | Rate


def prefixes(steps: int, period: int, at: Sequence[int] | None) -> np.ndarray:
    """Where a curve is looked at: as asked, or at whole rounds of `period` steps."""
    if at is not None:
        return np.atleast_1d(np.asarray(at, int))
    rounds = max(1, steps // period)
    return period * np.unique(np.geomspace(1, rounds, POINTS).round().astype(int))


def prefix_of(run: Any, steps: int, seed: int) -> Prefix:
    """The first steps of a run with this seed."""
    return Prefix(run.problem, run.stream, int(steps), seed=seed, domain=run.domain)


def averaged(run: Any, of: Callable[[int], Bound]) -> Bound:
    """The mean over seeds of what `of(seed)` bounds: it bounds the mean regret."""
    found = [of(seed) for seed in run.summary.seeds]
    terms = {
        name: np.mean([np.broadcast_to(b.terms[name], np.shape(b.steps)) for b in found], axis=0)
        for name in found[0].terms
    }
    return found[0]._replace(terms=terms)


def regret_at(run: Any, at: np.ndarray, kind: str) -> np.ndarray:
    """The run's regret of this kind at some prefixes, [seeds, prefixes]."""
    return np.atleast_2d(run.regret([int(t) for t in at], kind=kind).values)


# --- what theorems assume of a run ----------------------------------------------------------------


def schedule_of(run: Any) -> float | Falling:
    """The run's step: a constant, or one over time; others are in no theorem."""
    step = declared(run, "step")
    if step.always is not None:
        return float(step.always)
    if step.falling is not None:
        return Falling(float(step.falling.sigma), float(step.falling.shift))
    raise MainstemError(f"bound: no theorem has the step {step}: take a constant or a rule")


def declared(run: Any, fact: str) -> Any:
    """What the run's algorithm says of itself; refused by the name of the fact if it does not."""
    if not hasattr(run.algorithm, fact):
        raise MainstemError(f"bound: {run.name} declares no {fact}, which the theorem asks for")
    return getattr(run.algorithm, fact)


def constant_of(run: Any) -> float:
    """The run's step, where the theorem is for a constant one."""
    found = schedule_of(run)
    if isinstance(found, Falling):
        raise MainstemError("bound: the theorem is for a constant step")
    return found


def everyone_heard(run: Any) -> None:
    """Refuses a run in which some clients are not heard."""
    if not run.algorithm.participation.everyone:
        raise MainstemError("bound: the theorem is for full participation")


def instant_links(run: Any) -> None:
    """Refuses a run with delays."""
    if "network" in run.spec["simulate"]:
        raise MainstemError("bound: the theorems are for links without delay")


def sent_as_it_is(run: Any) -> None:
    """Refuses a run whose messages are rounded."""
    if not run.algorithm.codec.linear:
        raise MainstemError("bound: the theorem is for codec=plain()")


def summed_up(run: Any) -> None:
    """Refuses a run whose server sees something else than the weighted sum."""
    if not run.algorithm.collect.additive:
        raise MainstemError("bound: the theorem is for collect=total()")


def plain_exchange(run: Any) -> None:
    """Refuses a run whose messages are late, rounded, or not summed up."""
    instant_links(run)
    sent_as_it_is(run)
    summed_up(run)
