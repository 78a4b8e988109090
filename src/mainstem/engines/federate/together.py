"""Members that are given a sample in the same turn of their event loop learn in one call.

A call costs far more than the arithmetic of a small model, and one process may serve many clients.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import jax
import numpy as np

from mainstem.base import Sample
from mainstem.engines.federate import member as members
from mainstem.engines.federate.charter import Charter
from mainstem.engines.federate.member import Member
from mainstem.engines.federate.wire import Upload

MOST = 32  # members in one call
FEW = 32, 8, 2, 1
LARGEST = 2**18  # numbers in the messages of all members in one call

_OPEN: WeakKeyDictionary[asyncio.AbstractEventLoop, "_Batch"] = WeakKeyDictionary()


async def turn(member: Member, sample: Sample, speaks: Callable[[], bool]) -> Upload | None:
    """Learn from this sample together with whoever else does now; what it says then, if it `speaks`."""
    loop = asyncio.get_running_loop()
    batch = _OPEN.get(loop)
    if batch is None or member in batch.waiting:
        batch = _OPEN[loop] = _Batch()
    batch.waiting[member] = sample, speaks
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        batch.waiting.pop(member, None)
        raise
    if batch.waiting:  # the first that is back learns for all
        if _OPEN.get(loop) is batch:
            del _OPEN[loop]
        batch.learn()
    return batch.said(member)


class _Batch:
    """Those that wait for the same call, and then what came of it."""

    def __init__(self) -> None:
        self.waiting: dict[Member, tuple[Sample, Callable[[], bool]]] = {}
        self._said: dict[Member, Upload | Exception | None] = {}

    def said(self, member: Member) -> Upload | None:
        said = self._said.pop(member)
        if isinstance(said, Exception):
            raise said
        return said

    def learn(self) -> None:
        """One call for all that are alike; what fails in it fails for each of them, and for nobody else."""
        waiting, self.waiting = self.waiting, {}
        alike: dict[Any, list[Member]] = {}
        for each, (sample, speaks) in waiting.items():
            form = tuple(map(np.shape, jax.tree.leaves(sample)))
            alike.setdefault((each.moves, id(each.news), speaks(), form), []).append(each)
        for (moves, _, speaks, _), group in alike.items():
            for part in _parts(group, _sizes(moves.charter)):
                said: Sequence[Upload | Exception | None]
                try:
                    said = members.turn(part, [waiting[each][0] for each in part], speaks)
                except Exception as error:
                    said = [error] * len(part)
                self._said |= zip(part, said, strict=True)


def _sizes(charter: Charter) -> Sequence[int]:
    """How many may be in one call, the largest first; each number is compiled when it first occurs.

    In lockstep the same members come together again and again; at their own pace it is never the same number.
    """
    most = max(1, min(MOST, LARGEST // charter.message))
    return range(most, 0, -1) if charter.lockstep else [size for size in FEW if size <= most]


def _parts(group: list[Member], sizes: Sequence[int]) -> Iterator[list[Member]]:
    for size in sizes:
        while len(group) >= size:
            yield group[:size]
            group = group[size:]
