"""Sync: after which steps the clients and the server talk."""

from collections.abc import Iterable

import numpy as np

from mainstem import check
from mainstem.base import Sync
from mainstem.spec import recorded


@recorded
def every(period: int, offset: int = 0) -> Sync:
    """After the steps t with t = offset modulo period.

    >>> every(3).after(np.arange(1, 8)).nonzero()[0] + 1
    array([3, 6])
    >>> every(3, offset=1).after(np.arange(1, 8)).nonzero()[0] + 1
    array([1, 4, 7])
    """
    period = check.integer("every", "period", period, least=1)
    offset = check.integer("every", "offset", offset, least=0, most=period - 1)
    return Sync(lambda steps: (steps - offset) % period == 0, period, offset)


@recorded
def after_steps(steps: Iterable[int]) -> Sync:
    """After any given set of steps (t + 1 in the set I of Mitra et al. 2021, Algorithm 1)."""
    if not isinstance(steps, Iterable):
        raise check.refuse("after_steps", "steps", "be several steps", steps)
    times = sorted({check.integer("after_steps", "steps", t, least=1) for t in steps})
    if not times:
        raise check.refuse("after_steps", "steps", "name at least one step", [])
    known = np.asarray(times)
    return Sync(lambda asked: np.isin(asked, known), period=None)


@recorded
def never() -> Sync:
    """No exchange at all."""
    return Sync(lambda steps: np.zeros(np.shape(steps), bool), period=None)
