"""Runner: makes runs, and reuses those that the same code made before from the same spec.

Runs are shared between results (a figure at 50 clients is a point of a figure over clients). Their folders are
named after the digest of their spec, sizes and seeds included, and of the code that decides their numbers: the
engine, and the modules that define the algorithm, the problem and the stream with everything that they import.
A change there causes new runs; a change of a figure, a claim or another algorithm does not.
"""

import ast
import functools
import hashlib
import importlib.util
import json
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mainstem.base import Algorithm, Problem, Stream
from mainstem.engines.simulate import simulate
from mainstem.run import Run, load
from mainstem.spec import digest, name_of, plain
from mainstem.value import Value, parts_of

PACKAGE = Path(__file__).resolve().parents[1]
ENGINE = (
    "engines/simulate",
    "engines/error_feedback.py",
    "engines/run_context.py",
    "base",
    "random.py",
    "replay.py",
)


@functools.cache
def fingerprint(*names: str) -> str:
    """A digest of the package's source in these folders and files."""
    read = hashlib.sha256()
    for name in names:
        place = PACKAGE / name
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            read.update(file.relative_to(PACKAGE).as_posix().encode())
            read.update(file.read_bytes())
    return read.hexdigest()


def makers(made: Value) -> Iterator[str]:
    """The modules of the classes of `made` and its parts."""
    yield type(made).__module__
    for _, inner in parts_of(made):
        yield from makers(inner)


@functools.cache
def source(module: str) -> str:
    """The source text of a module."""
    found = importlib.util.find_spec(module)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).read_text()


@functools.cache
def imported(module: str) -> frozenset[str]:
    """The modules of this package that define what a module imports, whichever module it imports that from."""
    tree, found = ast.parse(source(module)), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mainstem"):
            for alias in node.names:
                taken = _named(f"{node.module}.{alias.name}")
                found |= _taken(taken, alias.asname or alias.name, tree) or {str(node.module)}
    return frozenset(found - {"mainstem"})


def _named(name: str) -> Any:
    """A module, or the object of that name in one; None: neither."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        place, _, last = name.rpartition(".")
        return getattr(importlib.import_module(place), last, None)


def _taken(given: Any, name: str, tree: ast.AST) -> set[str]:
    """The modules that define what `tree` uses of `given`, which has this name in `tree`."""
    if not _gathers(given):
        return _homes(given)
    found = set()
    for node in ast.walk(tree):
        path = _path(node)
        if path[:1] == [name]:
            taken = given
            for step in path[1:]:
                taken = getattr(taken, step, None) if _gathers(taken) else taken
            found |= set() if _gathers(taken) else _homes(taken)
    return found or _homes(given)


def _gathers(given: Any) -> bool:
    """Whether this is a module that only re-exports what others define."""
    is_module = isinstance(given, types.ModuleType)
    return is_module and (hasattr(given, "__path__") or given.__name__ == "mainstem.extend")


def _homes(given: Any) -> set[str]:
    """The module of this package that `given` is, or is defined in."""
    is_module = isinstance(given, types.ModuleType)
    home = given.__name__ if is_module else getattr(given, "__module__", None)
    return {str(home)} if str(home).startswith("mainstem") else set()


def _path(node: ast.AST) -> list[str]:
    """The names in a.b.c, as a list."""
    if isinstance(node, ast.Attribute):
        before = _path(node.value)
        return [*before, node.attr] if before else []
    return [node.id] if isinstance(node, ast.Name) else []


def needed(modules: set[str]) -> set[str]:
    """These modules, and those of this package that they import, directly or indirectly.

    A result's own module is taken alone: the claims and figures that it imports decide no number.
    """
    found: set[str] = set()
    ahead = set(modules)
    while ahead:
        module = ahead.pop()
        found.add(module)
        if not module.startswith("mainstem.papers"):
            ahead |= imported(module) - found
    return found


def code(*made: Any) -> str:
    """A digest of the code that decides the numbers of a run of these values."""
    modules = sorted(needed({module for value in made for module in makers(value)}))
    text = [fingerprint(*ENGINE), *(f"{module}: {source(module)}" for module in modules)]
    return hashlib.sha256("\n".join(text).encode()).hexdigest()


class Runner:
    """The folder of the runs, and the first seed of each."""

    def __init__(self, folder: Path, seed: int = 0):
        self.folder = folder
        self.seed = seed
        self.devices: set[str] = set()
        self.saved = 0.0  # seconds that earlier calls spent on runs that this one reuses

    def place(
        self, algorithm: Algorithm, problem: Problem, stream: Stream, settings: dict[str, Any]
    ) -> Path:
        """The folder of a run."""
        asked = (algorithm, problem, stream)
        key = [*(plain(each) for each in asked), plain(settings), code(*asked)]
        return self.folder / f"{name_of(algorithm)}-{digest(key)[:20]}"

    def run(
        self, algorithm: Algorithm, problem: Problem, stream: Stream, *, seeds: int, **settings: Any
    ) -> Run:
        """The run of `simulate` with these arguments and `seeds` seeds."""
        chosen = {"seeds": [self.seed + n for n in range(seeds)], **settings}
        place = self.place(algorithm, problem, stream, chosen)
        if (place / "run.json").exists():
            found = load(place, problem=problem, stream=stream)
            self.saved += float((place / "seconds").read_text())
        else:
            begin = time.monotonic()
            found = simulate(algorithm, problem, stream, folder=place, **chosen)
            (place / "seconds").write_text(f"{time.monotonic() - begin:.3f}")
        self.devices.update(json.loads((place / "environment.json").read_text())["devices"])
        return found
