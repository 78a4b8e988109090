"""Comparison of a run with its theorem: the measured value and the bound, in the theorem's units."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mainstem.base import Falling
from mainstem.errors import MainstemError
from mainstem.measure.prefix import Prefix
from mainstem.theory.bound import Bound, Rate

POINTS = 12  # prefixes of a curve


class Beside(NamedTuple):
    """A measured quantity, and the bound of a theorem on it, in the theorem's units."""

    measured: np.ndarray  # [seeds, prefixes]
    bound: Bound | Rate


def prefixes(steps: int, period: int, at: Sequence[int] | None) -> np.ndarray:
    """The prefixes of a curve: `at` if given, otherwise multiples of `period`."""
    if at is not None:
        return np.atleast_1d(np.asarray(at, int))
    rounds = max(1, steps // period)
    return period * np.unique(np.geomspace(1, rounds, POINTS).round().astype(int))


def prefix_of(run: Any, steps: int, seed: int) -> Prefix:
    """The first steps of a run with this seed."""
    return Prefix(run.problem, run.stream, int(steps), seed=seed, domain=run.domain)


def averaged(run: Any, of: Callable[[int], Bound]) -> Bound:
    """The mean over seeds of the bounds `of(seed)`: a bound on the mean regret."""
    found = [of(seed) for seed in run.summary.seeds]
    terms = {
        name: np.mean([np.broadcast_to(b.terms[name], np.shape(b.steps)) for b in found], axis=0)
        for name in found[0].terms
    }
    return found[0]._replace(terms=terms)


def regret_at(run: Any, at: np.ndarray, kind: str) -> np.ndarray:
    """The run's regret of this kind at some prefixes, [seeds, prefixes]."""
    return np.atleast_2d(run.regret([int(t) for t in at], kind=kind).values)


# --- assumptions of the theorems ------------------------------------------------------------------


def schedule_of(run: Any) -> float | Falling:
    """The run's step: a constant, or 2 / (sigma (t + shift)); an error for others, which no theorem covers."""
    step = declared(run, "step")
    if step.always is not None:
        return float(step.always)
    if step.falling is not None:
        return Falling(float(step.falling.sigma), float(step.falling.shift))
    raise MainstemError(f"bound: no theorem has the step {step}: take a constant or a rule")


def declared(run: Any, fact: str) -> Any:
    """What the run's algorithm declares under the name `fact`; an error that names it if it is missing."""
    if not hasattr(run.algorithm, fact):
        raise MainstemError(f"bound: {run.name} declares no {fact}, which the theorem asks for")
    return getattr(run.algorithm, fact)


def constant_of(run: Any) -> float:
    """The run's step, for a theorem with a constant step; an error if it is not constant."""
    found = schedule_of(run)
    if isinstance(found, Falling):
        raise MainstemError("bound: the theorem is for a constant step")
    return found


def everyone_heard(run: Any) -> None:
    """Raises an error unless all clients participate at every sync."""
    if not run.algorithm.participation.everyone:
        raise MainstemError("bound: the theorem is for full participation")


def instant_links(run: Any) -> None:
    """Raises an error for a run with delays."""
    if "network" in run.spec["simulate"]:
        raise MainstemError("bound: the theorems are for links without delay")


def sent_as_it_is(run: Any) -> None:
    """Raises an error for a run whose messages or broadcasts are rounded."""
    if not run.algorithm.codec.linear:
        raise MainstemError("bound: the theorem is for codec=plain()")
    broadcast_as_it_is(run)


def broadcast_as_it_is(run: Any) -> None:
    """Raises an error for a run whose broadcasts are rounded."""
    codec = run.algorithm.downlink
    if codec is not None and not codec.linear:
        raise MainstemError("bound: the theorem is for downlink=plain()")


def summed_up(run: Any) -> None:
    """Raises an error unless the server gets the weighted sum of the uploads."""
    if not run.algorithm.collect.additive:
        raise MainstemError("bound: the theorem is for collect=total()")


def plain_exchange(run: Any) -> None:
    """Raises an error for a run whose messages are delayed, rounded, or not summed."""
    instant_links(run)
    sent_as_it_is(run)
    summed_up(run)
