"""Batching: clients that call `learn` in the same iteration of the event loop learn in one compiled call.

A call costs far more than the arithmetic of a small model, and one process may serve many clients.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import jax
import numpy as np

from mainstem.base import Sample
from mainstem.engines.federate.client import state as states
from mainstem.engines.federate.client.state import ClientState
from mainstem.engines.federate.protocol.messages import Upload
from mainstem.engines.federate.protocol.run_document import RunDocument

SIZES = 32, 16, 8, 4, 2, 1  # clients in one call: each size is compiled when it first occurs
MAX_NUMBERS = 2**18  # in the uploads of all clients of one call

_OPEN: WeakKeyDictionary[asyncio.AbstractEventLoop, "_Batch"] = WeakKeyDictionary()


class _Request(NamedTuple):
    sample: Sample
    uploads: Callable[[], bool]
    done: Callable[[Upload | None], None]


async def learn(
    state: ClientState,
    sample: Sample,
    uploads: Callable[[], bool],
    done: Callable[[Upload | None], None],
) -> None:
    """Learns from a sample in one call with others. `done` receives the upload, if `uploads` asks for one.

    If the caller is cancelled, either nothing was learnt, or the sample was learnt and `done` was called. One
    state may wait in one batch at a time.
    """
    loop = asyncio.get_running_loop()
    batch = _OPEN.setdefault(loop, _Batch())
    batch.waiting[state] = _Request(sample, uploads, done)
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        batch.waiting.pop(state, None)
        raise
    if batch.waiting:  # the first that is resumed learns for all
        del _OPEN[loop]
        batch.learn()
    if state in batch.failed:
        raise batch.failed[state]


class _Batch:
    """Clients that wait for the same call, and the errors of those that failed in it."""

    def __init__(self) -> None:
        self.waiting: dict[ClientState, _Request] = {}
        self.failed: dict[ClientState, Exception] = {}

    def learn(self) -> None:
        """One call for each group of compatible clients. An error in a call fails its group only."""
        waiting, self.waiting = self.waiting, {}
        groups: dict[Any, list[ClientState]] = {}
        for each, request in waiting.items():
            form = _form(request.sample)
            key = each.kernels, id(each.received), request.uploads(), form
            groups.setdefault(key, []).append(each)
        for (kernels, _, uploads, _), group in groups.items():
            for part in _parts(group, _limit(kernels.document)):
                try:
                    samples = [waiting[each].sample for each in part]
                    sent = states.learn_together(part, samples, uploads)
                except Exception as error:
                    self.failed |= dict.fromkeys(part, error)
                    continue
                for each, upload in zip(part, sent, strict=True):
                    try:
                        waiting[each].done(upload)
                    except Exception as error:
                        self.failed[each] = error


def _form(sample: Sample) -> Any:
    """The structure, shapes and types of a sample: equal ones can be stacked."""
    leaves, tree = jax.tree.flatten(sample)
    return tree, *((np.shape(leaf), getattr(leaf, "dtype", type(leaf))) for leaf in leaves)


def _limit(document: RunDocument) -> int:
    """Clients in one call. At the free pace one: every other number of clients would be compiled anew."""
    return MAX_NUMBERS // document.message if document.lockstep else 1


def _parts(group: list[ClientState], limit: int) -> Iterator[list[ClientState]]:
    """Splits a group into parts of few sizes, none above `limit`."""
    for size in SIZES:
        while len(group) >= size and size <= max(1, limit):
            yield group[:size]
            group = group[size:]
