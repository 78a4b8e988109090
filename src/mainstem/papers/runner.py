"""Makes runs, or finds them: what the same code made before of the same spec is not made again.

Runs are shared between results (a figure at 50 clients is a point of a figure over clients), and lie in
folders named after the digest of their spec, sizes and seeds included, and of the code that decides
numbers. A change of that code therefore makes them anew; a change of a figure or a claim does not.
"""

import functools
import hashlib
import inspect
import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mainstem.base import Algorithm, Problem, Stream
from mainstem.engines.simulate import simulate
from mainstem.run import Run, load
from mainstem.spec import Spec, plain

PACKAGE = Path(__file__).resolve().parents[1]
DECIDES = ("algorithms", "base", "datasets", "engines", "parts", "problems", "streams")
DECIDES_TOO = ("random.py", "rules.py")
KNOWN = {name.removesuffix(".py") for name in DECIDES + DECIDES_TOO}


@functools.cache
def fingerprint(names: Iterable[str] = DECIDES + DECIDES_TOO) -> str:
    """A digest of the package's source in these folders and files."""
    digest = hashlib.sha256()
    for name in names:
        place = PACKAGE / name
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(file.relative_to(PACKAGE).as_posix().encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


def elsewhere(value: Any) -> Iterator[str]:
    """The source of the modules outside those folders that made `value` or a part of it."""
    spec = getattr(value, "spec", None)
    if not isinstance(spec, Spec):
        return
    if spec.module and spec.module.removeprefix("mainstem.").partition(".")[0] not in KNOWN:
        yield inspect.getsource(sys.modules[spec.module])
    for argument in spec.arguments.values():
        yield from elsewhere(argument)


class Runner:
    """Where runs are kept, and the first seed of each."""

    def __init__(self, folder: Path, seed: int = 0):
        self.folder = folder
        self.seed = seed
        self.devices: set[str] = set()
        self.saved = 0.0  # seconds that earlier calls spent on runs which this one found

    def run(
        self, algorithm: Algorithm, problem: Problem, stream: Stream, *, seeds: int, **settings: Any
    ) -> Run:
        """The run of `simulate` with these arguments and `seeds` seeds."""
        chosen = {"seeds": [self.seed + n for n in range(seeds)], **settings}
        asked = (algorithm, problem, stream)
        code = [fingerprint(), *sorted({text for each in asked for text in elsewhere(each)})]
        key = [*(plain(each) for each in asked), plain(chosen), code]
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:20]
        place = self.folder / f"{algorithm.spec.name}-{digest}"
        if (place / "run.json").exists():
            found = load(place, problem=problem, stream=stream)
            self.saved += float((place / "seconds").read_text())
        else:
            begin = time.monotonic()
            found = simulate(algorithm, problem, stream, folder=place, **chosen)
            (place / "seconds").write_text(f"{time.monotonic() - begin:.3f}")
        self.devices.update(json.loads((place / "environment.json").read_text())["devices"])
        return found
