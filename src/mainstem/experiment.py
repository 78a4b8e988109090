"""Experiment files: read TOML and build the problem, the stream and the algorithms that it describes.

A table with a `name` is a call of the factory of that name; a table inside it is a part. The error for an
unknown name suggests the nearest valid one.
"""

import difflib
import inspect
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from mainstem import algorithms, parts, plugins, problems, streams, theory
from mainstem.base import Algorithm, Problem, Stream
from mainstem.code_fingerprint import of_library
from mainstem.errors import BadSpec
from mainstem.parts import network
from mainstem.spec import CODE
from mainstem.value import parameters, takes_anything

FORMAT = 1  # of experiment files, see docs/experiment-files.md
TABLES = ("problem", "stream", "algorithm", "simulate", "sweep")
SETTINGS = (
    "steps",
    "seed",
    "seeds",
    "dtype",
    "measure",
    "weights",
    "network",
    "chunk",
    "checkpoint",
    "devices",
    "plain",
    "every",
)
DEALS = {name: getattr(streams, name) for name in plugins.DEALS}


class Experiment(NamedTuple):
    """The content of an experiment file, as values."""

    problem: Problem
    stream: Stream
    algorithms: list[Algorithm]
    settings: dict[str, Any]


def read(
    path: str | Path, changes: Iterable[str] = (), algorithms_needed: bool = True
) -> Experiment:
    """Reads the experiment file at `path`, applies the `key=value` changes, and builds the experiment."""
    content = parsed(path, changes)
    if not algorithms_needed:
        content.pop("algorithm", None)
    return build(content, str(path), algorithms_needed)


def parsed(path: str | Path, changes: Iterable[str] = ()) -> dict[str, Any]:
    """Reads the tables of the file at `path` and applies the `key=value` changes."""
    try:
        content = tomllib.loads(Path(path).read_text())
    except OSError as error:
        raise BadSpec(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSpec(f"{path}: is not TOML: {error}") from None
    for change in changes:
        apply(content, change)
    version = content.pop("format", FORMAT)
    if version != FORMAT:
        raise BadSpec(
            f"{path}: format must be {FORMAT}, the one that this version reads, got {version!r}"
        )
    return content


def apply(content: dict[str, Any], change: str) -> None:
    """Applies one `key=value` change in place: `simulate.steps=100`, `algorithm.0.step=0.5`."""
    key, equals, value = change.partition("=")
    if not equals:
        raise BadSpec(f"--set {change}: wants key=value, such as simulate.steps=100")
    try:
        parsed = tomllib.loads(f"x = {value}")["x"]
    except tomllib.TOMLDecodeError:
        parsed = value
    put(content, key.strip(), parsed, f"--set {change}")


def put(content: dict[str, Any], key: str, given: Any, where: str) -> None:
    """Puts a value in its place in the content of a file: `simulate.steps`, `algorithm.0.step`; without a number
    the only algorithm is meant."""
    *way, last = key.split(".")
    place: Any = content
    try:
        for name in way:
            place = _only(place, name)
            place = place.setdefault(name, {}) if isinstance(place, dict) else place[int(name)]
        place = _only(place, last)
        place[int(last) if isinstance(place, list) else last] = given
    except (IndexError, ValueError, TypeError, AttributeError):
        raise BadSpec(f"{where}: there is no such place in the file") from None


def _only(place: Any, name: str) -> Any:
    """The only entry of a list, where no number is given."""
    alone = isinstance(place, list) and len(place) == 1 and not name.isdigit()
    return place[0] if alone else place


def build(
    content: Mapping[str, Any], where: str = "spec", algorithms_needed: bool = True
) -> Experiment:
    """Builds the experiment that a parsed file describes."""
    for name in content:
        if name in SETTINGS:
            raise BadSpec(f"{where}: {name} is a key of the table [simulate]: simulate.{name}")
    known(where, "table", content, TABLES)
    for name in ("problem", "stream", *(["algorithm"] if algorithms_needed else [])):
        if name not in content:
            raise BadSpec(f"{where}: the table [{name}] is missing")
    wanted = content.get("algorithm", [])
    listed = wanted if isinstance(wanted, list) else [wanted]
    if algorithms_needed and not listed:
        raise BadSpec(f"{where}: the table [[algorithm]] is missing")
    settings = dict(_table(f"{where}: [simulate]", content.get("simulate", {})))
    known(f"{where}: [simulate]", "key", settings, SETTINGS)
    if "network" in settings:
        settings["network"] = links(settings, where)
    return Experiment(
        _made_here(f"{where}: [problem]", problems, content["problem"], Problem),
        _made_here(f"{where}: [stream]", streams, content["stream"], Stream),
        [_made_here(f"{where}: [[algorithm]]", algorithms, it, Algorithm) for it in listed],
        settings,
    )


def _made_here(where: str, module: ModuleType, table: Any, kind: type) -> Any:
    """What a table describes: by a `name`, or by a `factory = "module:function"` of this machine's own code.

    Only for files that the user runs: a run document, which comes from elsewhere, never names code to import.
    """
    if not isinstance(table, Mapping) or "factory" not in table:
        return made(where, module, table)
    path = str(table["factory"])
    try:
        factory = plugins.imported(path)
    except ImportError as error:
        raise BadSpec(f"{where}: factory {path!r} cannot be found: {error}") from None
    arguments = {key: given for key, given in table.items() if key != "factory"}
    given = {key: _value(f"{where} {key}", value) for key, value in arguments.items()}
    try:
        inspect.signature(factory).bind(**given)
    except ValueError:  # it has no signature
        pass
    except TypeError as error:
        raise BadSpec(f"{where}: factory {path!r}: {error}") from None
    found = factory(**given)
    if not isinstance(found, kind):
        raise BadSpec(f"{where}: factory {path!r} must return {_a(kind)}, gave {found!r:.60}")
    return found


def _a(kind: type) -> str:
    word = kind.__name__.lower()
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def configured(content: Mapping[str, Any], where: str) -> tuple[Algorithm, Problem, network]:
    """Builds the only algorithm, the problem and the delays that a parsed file describes."""
    listed = content.get("algorithm", [])
    only = listed if isinstance(listed, Mapping) else listed[0] if len(listed) == 1 else None
    if only is None:
        raise BadSpec(f"{where}: a sweep wants one [[algorithm]], got {len(listed)}")
    return (
        _made_here(f"{where}: [[algorithm]]", algorithms, only, Algorithm),
        _made_here(f"{where}: [problem]", problems, content["problem"], Problem),
        links(content.get("simulate", {}), where),
    )


def links(settings: Mapping[str, Any], where: str) -> network:
    """The delays that a [simulate] table describes."""
    given = _table(f"{where}: network", settings.get("network", {}))
    return made(f"{where}: network", parts, {"name": "network", **given})


def grid(table: Any, where: str) -> dict[str, list[Any]]:
    """The values of each key in a [sweep] table: a list, or {from, to, count} with `log = true` for equal
    ratios."""
    if not isinstance(table, Mapping) or not table:
        raise BadSpec(
            f'{where}: [sweep] wants keys with lists, such as "algorithm.step" = [0.1, 1.0]'
        )
    found = {}
    for key, given in table.items():
        place = f"{where}: [sweep] {key}"
        if not key.startswith(("algorithm.", "problem.", "simulate.network.")):
            wanted = "wants a key of the algorithm, the problem or simulate.network"
            raise BadSpec(f'{place}: {wanted}, such as "algorithm.step"')
        if isinstance(given, Mapping):
            known(place, "key", given, ("from", "to", "count", "log"))
            named = (given.get(name) for name in ("from", "to", "count", "log"))
            found[key] = _spaced(place, *named)
        elif isinstance(given, list) and given:
            found[key] = [_value(place, each) for each in given]
        else:
            raise BadSpec(f"{place}: wants a list of values, got {given!r}")
    return found


def _spaced(where: str, low: Any, high: Any, count: Any, log: Any) -> list[float]:
    """`count` numbers from `low` to `high`."""
    numbers = all(
        isinstance(each, int | float) and not isinstance(each, bool) for each in (low, high)
    )
    if not numbers or not isinstance(count, int) or count < 2 or not low < high:
        raise BadSpec(f"{where}: wants numbers from < to and a count of at least 2")
    if log is True and low <= 0:
        raise BadSpec(f"{where}: log = true wants from above 0, got {low}")
    spaced = np.geomspace(low, high, count) if log is True else np.linspace(low, high, count)
    return [float(f"{each:.6g}") for each in spaced]


def pieces(problem: Any, algorithm: Any, where: str) -> tuple[Problem, Algorithm]:
    """Builds a problem and an algorithm from their tables."""
    return (
        made(f"{where}: [problem]", problems, problem),
        made(f"{where}: [algorithm]", algorithms, algorithm),
    )


def _table(where: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadSpec(f"{where}: wants a table, got {value!r}")
    return value


def made(where: str, module: ModuleType, table: Any) -> Any:
    """Calls the factory named in `table` with the other entries as arguments."""
    factories = plugins.factories(module)
    if not isinstance(table, Mapping) or "name" not in table:
        first = min(factories, key=str.lower)
        raise BadSpec(f'{where}: wants a table with a name, such as name = "{first}"')
    return _call(where, factories, table, data=module is streams)


def _call(
    where: str,
    factories: Mapping[str, Callable[..., Any]],
    table: Mapping[str, Any],
    data: bool,
) -> Any:
    known(where, "name", [table["name"]], factories)
    factory, name = factories[table["name"]], table["name"]
    home = inspect.unwrap(factory).__module__  # a plugin's is known once it is imported
    beside = ("name",) if of_library(home) else ("name", CODE)
    arguments = {key: given for key, given in table.items() if key not in beside}
    takes = parameters(factory)
    if not takes_anything(factory):
        known(f"{where} {name}", "key", arguments, takes)
    values = {key: _value(f"{where} {key}", given, data) for key, given in arguments.items()}
    for parameter, needed in takes.items():
        if needed and parameter not in values:
            raise BadSpec(f"{where}: {name} needs {parameter}")
    return factory(**values)


def _value(where: str, value: Any, data: bool = True) -> Any:
    """Builds a part from a nested table; returns any other value unchanged."""
    return part(where, value, data) if isinstance(value, Mapping) else value


def part(where: str, table: Mapping[str, Any], data: bool = True) -> Any:
    """Builds what a nested table names: a part, a theorem's step size, a wrapped problem or algorithm; with `data`
    also a deal or a stream. Without it the table names no file of this machine, for no algorithm needs one."""
    if "name" not in table:
        return made(where, parts, table)
    steps = {name: getattr(theory, name) for name in theory.STEPS}
    found = DEALS | plugins.factories(streams) if data else {}
    for module in (algorithms, problems, parts):
        found = found | plugins.factories(module)
    found = found | steps
    return _call(where, found, table, data)


def known(where: str, what: str, given: Iterable[Any], allowed: Iterable[str]) -> None:
    """Raises `BadSpec` for a name that is not allowed, and suggests the nearest allowed one."""
    allowed = list(allowed)
    for name in given:
        if name not in allowed:
            near = difflib.get_close_matches(str(name), allowed, n=1, cutoff=0.4)
            hint = f", did you mean {near[0]}?" if near else f": one of {', '.join(allowed)}"
            raise BadSpec(f"{where}: unknown {what} {name!r}{hint}")
