"""Makes runs, or finds them: what the same code made before of the same spec is not made again.

Runs are shared between results (a figure at 50 clients is a point of a figure over clients), and lie in
folders named after the digest of their spec, sizes and seeds included, and of the code that decides
numbers. A change of that code therefore makes them anew; a change of a figure or a claim does not.
"""

import functools
import hashlib
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mainstem.base import Algorithm, Problem, Stream
from mainstem.engines.simulate import simulate
from mainstem.run import Run, load
from mainstem.spec import plain

PACKAGE = Path(__file__).resolve().parents[1]
DECIDES = ("algorithms", "base", "datasets", "engines", "parts", "problems", "streams")
DECIDES_TOO = ("random.py", "rules.py")


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
        key = [plain(each) for each in (algorithm, problem, stream, chosen, fingerprint())]
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
