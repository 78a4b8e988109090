"""Bound of a run: applies the theorem of the family that the run's algorithm declares."""

import importlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

from mainstem.errors import MainstemError
from mainstem.theory import PAPERS
from mainstem.theory.beside import Beside, prefixes


def beside(run: Any, at: Sequence[int] | None = None) -> Beside:
    """The run's measured regret at some prefixes, and the bound of its algorithm's theorem there."""
    if run.algorithm is None or run.problem is None or run.stream is None:
        raise MainstemError("bound: the run's data or code is not on this machine")
    family = run.algorithm.family
    if family not in PAPERS:
        raise MainstemError(
            f"bound: there is none for {run.name}: its algorithm declares no family of theorems "
            f"({', '.join(PAPERS)})"
        )
    period = math.lcm(run.algorithm.sync.period or 1, run.summary.every)
    paper = importlib.import_module(f"mainstem.theory.{family}")
    found: Beside = paper.of_run(run, prefixes(run.summary.steps, period, at))
    return found


def in_one_unit(found: Mapping[str, Beside], clients: Mapping[str, int]) -> dict[str, Beside]:
    """The same; as means over clients if the papers use different units."""
    if len({each.bound.of for each in found.values()}) == 1:
        return dict(found)
    return {name: _per_client(each, clients[name]) for name, each in found.items()}


def _per_client(found: Beside, clients: int) -> Beside:
    """The same as means over clients, if the paper sums over them."""
    if not found.bound.summed:
        return found
    terms = {name: value / clients for name, value in found.bound.terms.items()}
    bound = found.bound._replace(terms=terms, of="regret, mean over clients")
    return Beside(found.measured / clients, bound)
