"""Comparators: the best model for each kind of regret, remembered for other runs on the same stream."""

import weakref
from collections.abc import Hashable

import numpy as np

from mainstem.base import Stream
from mainstem.measure.hindsight import best_fixed
from mainstem.measure.personal_hindsight import best_pair
from mainstem.measure.question import Hindsight, Question
from mainstem.measure.steps import best_each

MOST = 2**20  # numbers of an entry that is remembered

# By the identity of the stream, as long as it exists: another one that is equal may have read another file.
_remembered: dict[int, dict[Hashable, Hindsight]] = {}


def comparator(
    kind: str, question: Question, prefixes: list[int], weights: np.ndarray | None
) -> Hindsight:
    """The best model for each of the prefixes; `weights` are those of the clients in personal regret.

    The minimum of a convex loss does not depend on where the search begins, so that it serves other runs.
    """
    method = kind if kind in ("personal", "dynamic") else "fixed"
    if not question.problem.convex:
        return _solved(method, question, prefixes, weights)
    known = _of(question.stream)
    fixed = question.problem, question.domain, question.seed, question.radius, question.expected
    key = method, fixed, tuple(prefixes), None if weights is None else weights.tobytes()
    if key not in known:
        found = _solved(method, question, prefixes, weights)
        if found.points.size > MOST:
            return found
        known[key] = found
    return known[key]


def _of(stream: Stream) -> dict[Hashable, Hindsight]:
    """What is known of a stream."""
    if id(stream) not in _remembered:
        _remembered[id(stream)] = {}
        weakref.finalize(stream, _remembered.pop, id(stream))
    return _remembered[id(stream)]


def _solved(
    method: str, question: Question, prefixes: list[int], weights: np.ndarray | None
) -> Hindsight:
    if method == "personal":
        return best_pair(question, prefixes, weights)
    if method == "dynamic":
        return best_each(question, prefixes)
    return best_fixed(question, prefixes)
