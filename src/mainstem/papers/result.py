"""Result: a published figure as a spec of what is run, the paper's claims, and how to draw it."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from mainstem.papers.evidence import HOLDS, Evidence

SIZES = ("full", "quick")

Numbers = dict[str, np.ndarray]  # the measurements; the first axis is that of the seeds


class Claim(NamedTuple):
    """A sentence of the paper, and what the numbers must show if it is true.

    `full` and `quick` are the verdicts recorded for the two sizes (None: the claim is not checked in that
    size); `why` gives the reason for each that is not "holds".
    """

    says: str
    shows: Callable[[Numbers], Evidence]
    full: str | None = HOLDS
    quick: str | None = HOLDS
    why: str = ""

    def recorded(self, size: str) -> str | None:
        """The verdict that is expected in this size."""
        return self.full if size == "full" else self.quick


class Result(NamedTuple):
    """A figure of a paper as a small spec.

    `measure(runner, **size)` computes the numbers, `draw(numbers)` the figure. `full` and `quick` are the
    sizes, `chosen` the constants that the paper leaves open, each with its reason.
    """

    name: str
    paper: str
    about: str
    full: Mapping[str, Any]
    quick: Mapping[str, Any]
    measure: Callable[..., Numbers]
    claims: tuple[Claim, ...]
    draw: Callable[[Numbers], Any]
    minutes: float  # of the full size, on two cores (on one H200 if `gpu`)
    chosen: tuple[str, ...] = ()
    gpu: bool = False  # whether the full size needs one

    def size(self, name: str) -> Mapping[str, Any]:
        """The constants of a size."""
        return self.full if name == "full" else self.quick
