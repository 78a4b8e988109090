"""The question of the best model in hindsight, and its answer for several prefixes of a stream."""

from typing import NamedTuple

import numpy as np

from mainstem.base import Domain, Problem, Stream
from mainstem.measure.certificate import Solution, certified


class Hindsight(NamedTuple):
    """The best models for several prefixes."""

    values: np.ndarray  # the smallest sum of losses for each prefix
    gaps: np.ndarray  # an upper bound on each value minus the true minimum
    points: np.ndarray  # the best model for each prefix
    title: str  # "best", and the set over which they are
    note: str = ""  # what else the certificates depend on

    @property
    def params(self) -> np.ndarray:
        """The best model for the last prefix."""
        return self.points[-1]

    @property
    def statement(self) -> str:
        """The title with the certificate of the last prefix."""
        return certified(self.title, float(self.gaps[-1]), self.note)


class Question(NamedTuple):
    """The definition of a best fixed model: its losses, its domain, its numerical settings.

    Its losses are those of the stream in float64, whatever the dtype of a run: draws are the same in both.
    """

    problem: Problem
    stream: Stream
    domain: Domain
    seed: int
    radius: float
    start: np.ndarray
    expected: bool = False  # the stream's expected losses instead of the drawn ones


def solved(solutions: list[Solution]) -> Hindsight:
    last = solutions[-1]
    values, gaps = (np.array([getattr(s, name) for s in solutions]) for name in ("value", "gap"))
    return Hindsight(values, gaps, np.stack([s.params for s in solutions]), last.title, last.note)
