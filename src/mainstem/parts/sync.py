"""Sync: after which steps clients and server exchange messages."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from mainstem import check
from mainstem.base import Sync
from mainstem.value import integer, static, value


@value
class every(Sync):
    """After the steps t with t = offset modulo period.

    >>> every(3).after(np.arange(1, 8)).nonzero()[0] + 1
    array([3, 6])
    >>> every(3, offset=1).after(np.arange(1, 8)).nonzero()[0] + 1
    array([1, 4, 7])
    """

    period: int = integer(least=1)
    offset: int = integer(default=0, least=0)

    def admit(self) -> None:
        check.integer("every", "offset", self.offset, least=0, most=self.period - 1)

    def after(self, steps: np.ndarray) -> np.ndarray:
        return np.asarray((steps - self.offset) % self.period == 0)


def _times(owner: str, name: str, steps: Any) -> tuple[int, ...]:
    if not isinstance(steps, Iterable):
        raise check.refuse(owner, name, "be several steps", steps)
    times = sorted({check.integer(owner, name, t, least=1) for t in steps})
    if not times:
        raise check.refuse(owner, name, "name at least one step", [])
    return tuple(times)


@value
class after_steps(Sync):
    """After any given set of steps (t + 1 in the set I of Mitra et al. 2021, Algorithm 1).

    >>> after_steps([4, 1]).steps
    (1, 4)
    """

    steps: tuple[int, ...] = static(checked=_times)

    def after(self, steps: np.ndarray) -> np.ndarray:
        return np.isin(steps, np.asarray(self.steps))


@value
class never(Sync):
    """No syncs.

    >>> never().silent
    True
    """

    silent = True

    def after(self, steps: np.ndarray) -> np.ndarray:
        return np.zeros(np.shape(steps), bool)
