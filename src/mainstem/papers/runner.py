"""Makes runs, or finds them: what the same code made before of the same spec is not made again.

Runs are shared between results (a figure at 50 clients is a point of a figure over clients), and lie in
folders named after the digest of their spec, sizes and seeds included, and of the code that decides their
numbers: the engine, and the modules that made the algorithm, the problem and the stream with all that they
import. A change there makes runs anew; a change of a figure, a claim or another algorithm does not.
"""

import ast
import functools
import hashlib
import importlib.util
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mainstem.base import Algorithm, Problem, Stream
from mainstem.engines.simulate import simulate
from mainstem.run import Run, load
from mainstem.spec import name_of, plain
from mainstem.value import Value, parts_of

PACKAGE = Path(__file__).resolve().parents[1]
ENGINE = ("engines/simulate", "engines/meeting.py", "base", "random.py")


@functools.cache
def fingerprint(*names: str) -> str:
    """A digest of the package's source in these folders and files."""
    digest = hashlib.sha256()
    for name in names:
        place = PACKAGE / name
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(file.relative_to(PACKAGE).as_posix().encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


def makers(made: Value) -> Iterator[str]:
    """The modules of the classes of `made` and its parts."""
    yield type(made).__module__
    for _, inner in parts_of(made):
        yield from makers(inner)


@functools.cache
def source(module: str) -> str:
    """The text of a module."""
    found = importlib.util.find_spec(module)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).read_text()


@functools.cache
def imported(module: str) -> frozenset[str]:
    """The modules of this package that a module imports; of packages, what is named and not all."""
    found = set()
    for node in ast.walk(ast.parse(source(module))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mainstem"):
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                found.add(inside if _is_module(inside) else str(node.module))
    return frozenset(found - {"mainstem"})


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def needed(modules: set[str]) -> set[str]:
    """These modules, and those of this package that they import, however far down.

    A result's own module is taken alone: of what it imports, claims and figures decide no number.
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
    """A digest of the code that decides the numbers of a run of these."""
    modules = sorted(needed({module for value in made for module in makers(value)}))
    told = [fingerprint(*ENGINE), *(f"{module}: {source(module)}" for module in modules)]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()


class Runner:
    """Where runs are kept, and the first seed of each."""

    def __init__(self, folder: Path, seed: int = 0):
        self.folder = folder
        self.seed = seed
        self.devices: set[str] = set()
        self.saved = 0.0  # seconds that earlier calls spent on runs which this one found

    def place(
        self, algorithm: Algorithm, problem: Problem, stream: Stream, settings: dict[str, Any]
    ) -> Path:
        """The folder of a run."""
        asked = (algorithm, problem, stream)
        key = [*(plain(each) for each in asked), plain(settings), code(*asked)]
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:20]
        return self.folder / f"{name_of(algorithm)}-{digest}"

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
