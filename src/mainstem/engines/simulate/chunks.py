"""Chunks: split the steps of a run for the device, and choose the length of a chunk and the size of a cohort."""

from typing import Any, NamedTuple

import jax
import numpy as np

from mainstem.base import Algorithm, Stream
from mainstem.engines.simulate.devices import memory
from mainstem.engines.simulate.program import Program
from mainstem.engines.simulate.stage import Shape
from mainstem.replay import first_shapes

CACHE = 2**23  # bytes that the samples, models and losses of one chunk may take on a CPU
PART = 2**-5  # of an accelerator's memory, for the same
AHEAD = (
    2**26
)  # bytes of samples and shared models that are stored, if a chunk has more than `LEAST` steps
LEAST = 128
ROLLOUTS = 2**30  # bytes that the models of all clients of the rollouts of a sweep may take
WORK = {"cpu": 2**32, "gpu": 2**40}  # parameters touched between two progress reports


class Chunk(NamedTuple):
    """A chunk: the consecutive steps `first` to `last`, and the shape that they are compiled with."""

    first: int
    last: int
    shape: Shape
    flags: np.ndarray | None = None  # for the reference path: after which steps a sync follows


def budget(stream: Stream, size: int, seeds: int, stored: int | None, shared: bool) -> int:
    """The number of steps that a chunk should have. `stored`: of how many parameters each step is stored for one
    batched pass, with its samples; None: nothing is stored. `shared`: whether the clients have one model."""
    piece = sum(np.asarray(x).nbytes for x in jax.tree.leaves(stream.chunk(0, 1, 1)))
    each = piece + 4 * stream.clients  # and a loss for each client
    each += 0 if stored is None else _sample_bytes(stream) + 8 * stored
    by_memory = _memory() // max(1, seeds * each)
    if shared and stored is not None:
        by_memory = min(by_memory, max(AHEAD // max(1, seeds * each), LEAST))
    by_work = WORK.get(jax.default_backend(), WORK["gpu"]) // max(1, seeds * stream.clients * size)
    return int(np.clip(min(by_memory, by_work), 16, 2**14))


def _memory() -> int:
    """Bytes that one chunk may take: they should fit in the cache of a CPU, or in a part of an accelerator's
    memory."""
    if jax.default_backend() == "cpu":
        return CACHE
    return int(PART * memory())


def rollouts_at_once(stream: Stream, size: int) -> int:
    """The most rollouts that are computed at once."""
    each = 4 * stream.clients * (size + 16)
    return max(1, ROLLOUTS // each)


def _sample_bytes(stream: Stream) -> int:
    """The bytes of one step's samples."""
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(first_shapes(stream)))


def by_rounds(algorithm: Algorithm, steps: int, after: int, most: int, shape: Shape) -> list[Chunk]:
    """Splits the steps after `after` into chunks of complete rounds; incomplete rounds at the ends are
    separate."""
    period, offset = algorithm.sync.period or 1, algorithm.sync.offset
    planned = []
    first = after + 1
    if algorithm.sync.silent:
        for count in even(steps - after, most):
            planned.append(_chunk(first, first + count - 1, shape, 1, synced=False))
            first += count
        return planned
    head = (offset - after) % period
    if head:  # up to the first sync
        last = min(after + head, steps)
        planned.append(_chunk(first, last, shape, 1, synced=last == after + head))
        first = last + 1
    rounds = (steps - first + 1) // period
    for count in even(rounds, max(1, most // period)):
        last = first + count * period - 1
        planned.append(_chunk(first, last, shape, count, synced=True))
        first = last + 1
    if first <= steps:
        planned.append(_chunk(first, steps, shape, 1, synced=False))
    return planned


def _chunk(first: int, last: int, shape: Shape, rounds: int, synced: bool) -> Chunk:
    length = (last - first + 1) // rounds
    return Chunk(first, last, shape._replace(rounds=rounds, length=length, sync=synced))


def by_flags(algorithm: Algorithm, steps: int, after: int, most: int) -> list[Chunk]:
    """Splits the steps after `after` into chunks with a sync flag for each step."""
    planned, first = [], after + 1
    for count in even(steps - after, most):
        flags = np.asarray(algorithm.sync.after(np.arange(first, first + count)), bool)
        planned.append(Chunk(first, first + count - 1, Shape(1, count), flags))
        first += count
    return planned


def even(total: int, most: int) -> list[int]:
    """Splits `total` into parts of at most `most`, all equal where possible: each size is compiled once.

    >>> even(100, 30), even(97, 30)
    ([25, 25, 25, 25], [30, 30, 30, 7])
    """
    if total <= 0:
        return []
    if total <= most:
        return [total]
    fair = next((n for n in range(most, most // 2, -1) if total % n == 0), most)
    full, rest = divmod(total, fair)
    return [fair] * full + ([rest] if rest else [])


def room(program: Program, keys: Any, steps: int) -> int | None:
    """The most clients that participate at any sync of the run, over all seeds; None: gathering them does not pay.

    Participation is a function of the key and the step, so this number is exact: no client is ever left out.
    """
    algorithm, clients = program.values.algorithm, program.plan.clients
    period, offset = algorithm.sync.period or 1, algorithm.sync.offset
    syncs = np.arange(offset or period, steps + 1, period, dtype=np.int32)
    if algorithm.participation.everyone or algorithm.sync.silent or syncs.size == 0:
        return None
    found = max(1, program.most_heard(keys, syncs))
    return found if found < 0.75 * clients else None
