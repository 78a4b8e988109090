"""Members that are given a sample in the same turn of their event loop learn in one call.

A call costs far more than the arithmetic of a small model, and one process may serve many clients.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import jax
import numpy as np

from mainstem.base import Sample
from mainstem.engines.federate import member as members
from mainstem.engines.federate.charter import Charter
from mainstem.engines.federate.member import Member
from mainstem.engines.federate.wire import Upload

SIZES = 32, 16, 8, 4, 2, 1  # members in one call: each size is compiled when it first occurs
NUMBERS = 2**18  # in the messages of all members in one call, at most

_OPEN: WeakKeyDictionary[asyncio.AbstractEventLoop, "_Batch"] = WeakKeyDictionary()


class _Asked(NamedTuple):
    sample: Sample
    speaks: Callable[[], bool]
    said: Callable[[Upload | None], None]


async def turn(
    member: Member,
    sample: Sample,
    speaks: Callable[[], bool],
    said: Callable[[Upload | None], None],
) -> None:
    """Learn from this sample together with whoever else does now; `said` is given the upload if it `speaks`.

    Whoever is cancelled has not learnt, or has learnt and `said` was called. A member takes one turn at a time.
    """
    loop = asyncio.get_running_loop()
    batch = _OPEN.setdefault(loop, _Batch())
    batch.waiting[member] = _Asked(sample, speaks, said)
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        batch.waiting.pop(member, None)
        raise
    if batch.waiting:  # the first that is back learns for all
        del _OPEN[loop]
        batch.learn()
    if member in batch.failed:
        raise batch.failed[member]


class _Batch:
    """Those that wait for the same call, and then whose part in it has failed."""

    def __init__(self) -> None:
        self.waiting: dict[Member, _Asked] = {}
        self.failed: dict[Member, Exception] = {}

    def learn(self) -> None:
        """One call for all that are alike; what fails in it fails for each of them, and for nobody else."""
        waiting, self.waiting = self.waiting, {}
        alike: dict[Any, list[Member]] = {}
        for each, asked in waiting.items():
            key = each.moves, id(each.news), asked.speaks(), _form(asked.sample)
            alike.setdefault(key, []).append(each)
        for (moves, _, speaks, _), group in alike.items():
            for part in _parts(group, _most(moves.charter)):
                try:
                    uploads = members.turn(part, [waiting[each].sample for each in part], speaks)
                except Exception as error:
                    self.failed |= dict.fromkeys(part, error)
                    continue
                for each, upload in zip(part, uploads, strict=True):
                    try:
                        waiting[each].said(upload)
                    except Exception as error:
                        self.failed[each] = error


def _form(sample: Sample) -> Any:
    """What two samples must share to be rows of the same arrays."""
    leaves, tree = jax.tree.flatten(sample)
    return tree, *((np.shape(leaf), getattr(leaf, "dtype", type(leaf))) for leaf in leaves)


def _most(charter: Charter) -> int:
    """How many may be in one call: at their own pace one, for they are never as many as before."""
    return NUMBERS // charter.message if charter.lockstep else 1


def _parts(group: list[Member], most: int) -> Iterator[list[Member]]:
    """In parts of few sizes; of more than one member only if that is at most so many."""
    for size in SIZES:
        while len(group) >= size and size <= max(1, most):
            yield group[:size]
            group = group[size:]
