"""The algorithm, problem and stream of a saved run: made again from its spec, or compared with those given."""

import functools
import importlib
import json
from typing import Any

from mainstem import experiment
from mainstem.base import Algorithm, Problem, Stream
from mainstem.errors import BadData, first_line
from mainstem.spec import codes, difference, plain, same, unnamed


def of_the_run(name: str, given: Any, wanted: Any) -> None:
    """Raises an error if a value is not the one with which the run was made."""
    found = None if given is None else plain(given)
    if found is None or unnamed(wanted) or unnamed(found):
        return
    if not same(found, wanted):
        raise BadData(f"load: {name} is not that of the run: {difference(found, wanted)}")


def rebuilt(
    spec: dict[str, Any],
    algorithm: Algorithm | None,
    problem: Problem | None,
    stream: Stream | None,
) -> Any:
    """(algorithm, problem, the stream or how to make it, domain); what came from the user's own code is None."""
    if algorithm is None:
        algorithm = _attempt("algorithms", spec["algorithm"][0])
    problem = _attempt("problems", spec["problem"]) if problem is None else problem
    domain = None
    if problem is not None:
        limited = not problem.domain.whole
        if limited or algorithm is not None:
            domain = problem.domain if limited else algorithm.domain
    made_later = functools.partial(_attempt, "streams", spec["stream"])
    return algorithm, problem, made_later if stream is None else stream, domain


def _attempt(package: str, table: Any) -> Any:
    """The value that a table describes; None if it cannot be made, or if its code has changed: the rest of the run
    can be read without it."""
    try:
        found = experiment.made("spec", importlib.import_module(f"mainstem.{package}"), table)
        return found if codes(plain(found)) == codes(table) else None
    except Exception:
        return None


def made_again(spec: dict[str, Any]) -> bool:
    """Whether the values of the user's own classes can be made from their tables, as those of a plugin can."""
    algorithms = [("algorithms", table) for table in spec["algorithm"]]
    tables = [*algorithms, ("problems", spec["problem"]), ("streams", spec["stream"])]
    return all(_attempt(package, table) is not None for package, table in tables if codes(table))


def why_not(table: Any) -> str:
    """Why the stream that a table describes cannot be made."""
    if '"array ' in json.dumps(table):
        return "the run's data was in memory"
    try:
        experiment.made("spec", importlib.import_module("mainstem.streams"), table)
    except Exception as error:
        return f"the run's data cannot be read: {first_line(error).removeprefix('spec ')}"
    return "the run's data cannot be made again"
