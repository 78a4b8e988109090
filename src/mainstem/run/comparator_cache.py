"""Comparators in the folder of a run: what was solved once is read again, also by another process."""

import contextlib
from pathlib import Path

import numpy as np

from mainstem.base import Problem, Stream
from mainstem.disk import npz, write
from mainstem.measure.comparators import MOST, comparator
from mainstem.measure.question import Hindsight, Question
from mainstem.measure.regret import Comparator
from mainstem.spec import digest, plain, unnamed

FORMAT = 1
FOLDER = "comparators"


def stored(folder: Path | None, problem: Problem, stream: Stream) -> Comparator:
    """`comparator`, which reads and writes the folder of a run, if there is one.

    Only minima of convex losses are stored. A file that is damaged, or of data that has changed, is not used.
    """
    if folder is None or not problem.convex:
        return comparator
    data = {"problem": plain(problem), "stream": plain(stream)}
    if unnamed(data) is not None:  # code without a fingerprint: it may be other code tomorrow
        return comparator

    def find(
        kind: str, question: Question, prefixes: list[int], weights: np.ndarray | None
    ) -> Hindsight:
        asked = {
            "format": FORMAT,
            **data,
            "kind": kind,
            "domain": repr(question.domain),
            "seed": question.seed,
            "radius": question.radius,
            "expected": question.expected,
            "prefixes": prefixes,
            "weights": None if weights is None else weights.tolist(),
        }
        path = folder / FOLDER / f"{digest(asked)[:32]}.npz"
        known = _read(path)
        if known is not None:
            return known
        found = comparator(kind, question, prefixes, weights)
        if found.points.size <= MOST:
            _write(path, found)
        return found

    return find


def _read(path: Path) -> Hindsight | None:
    try:
        with np.load(path, allow_pickle=False) as found:
            arrays = {name: found[name] for name in ("values", "gaps", "points")}
            return Hindsight(**arrays, title=str(found["title"]), note=str(found["note"]))
    except Exception:  # whatever is wrong with it, it is solved again
        return None


def _write(path: Path, found: Hindsight) -> None:
    with contextlib.suppress(OSError):  # a folder that cannot be written only costs time
        path.parent.mkdir(exist_ok=True)
        write(path, npz({name: np.asarray(part) for name, part in found._asdict().items()}))
