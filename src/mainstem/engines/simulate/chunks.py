"""A horizon in stretches: what is sent ahead, how long a stretch may be, who fits into a cohort."""

from typing import Any, NamedTuple

import jax
import numpy as np

from mainstem import replay
from mainstem.base import Algorithm, Stream
from mainstem.engines.simulate.program import Program
from mainstem.engines.simulate.stage import Shape

MEMORY = 2**23  # bytes that the samples and models of one stretch may take
WORK = 2**32  # parameters touched between two signs of life
KEPT = 4  # parameters up to which the clients' models are kept for one batched pass over the rows


class Stretch(NamedTuple):
    """Steps first to last, and how the program takes them."""

    first: int
    last: int
    shape: Shape
    flags: np.ndarray | None = None  # of the reference path: after which steps a sync follows


def budget(stream: Stream, size: int, seeds: int, batched: bool) -> int:
    """How many steps a stretch should have."""
    piece = sum(np.asarray(x).nbytes for x in jax.tree.leaves(stream.chunk(0, 1, 1)))
    each = piece + (_sample_bytes(stream) + 8 * stream.clients * size if batched else 0)
    by_memory = MEMORY // max(1, seeds * each)
    by_work = WORK // max(1, seeds * stream.clients * size)
    return int(np.clip(min(by_memory, by_work), 16, 2**14))


def _sample_bytes(stream: Stream) -> int:
    """The bytes of one step's samples."""
    samples = replay.first_shapes(stream)
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(samples))


def by_rounds(
    algorithm: Algorithm, steps: int, after: int, most: int, shape: Shape
) -> list[Stretch]:
    """The steps after `after` as stretches of whole rounds, ragged ends apart."""
    period, offset = algorithm.sync.period or 1, algorithm.sync.offset
    stretches = []
    first = after + 1
    head = (offset - after) % period
    if head:  # up to the first sync
        last = min(after + head, steps)
        stretches.append(_stretch(first, last, shape, 1, synced=last == after + head))
        first = last + 1
    rounds = (steps - first + 1) // period
    for count in even(rounds, max(1, most // period)):
        last = first + count * period - 1
        stretches.append(_stretch(first, last, shape, count, synced=True))
        first = last + 1
    if first <= steps:
        stretches.append(_stretch(first, steps, shape, 1, synced=False))
    return stretches


def _stretch(first: int, last: int, shape: Shape, rounds: int, synced: bool) -> Stretch:
    length = (last - first + 1) // rounds
    return Stretch(first, last, shape._replace(rounds=rounds, length=length, sync=synced))


def by_flags(algorithm: Algorithm, steps: int, after: int, most: int) -> list[Stretch]:
    """The steps after `after` as stretches with a sync flag for each step."""
    stretches, first = [], after + 1
    for count in even(steps - after, most):
        flags = np.asarray(algorithm.sync.after(np.arange(first, first + count)), bool)
        stretches.append(Stretch(first, first + count - 1, Shape(1, count), flags))
        first += count
    return stretches


def even(total: int, most: int) -> list[int]:
    """`total` in parts of at most `most`, all equal where that is possible: each size is compiled.

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
    """How many are heard at most at any sync of the run, over all seeds; None: no use gathering them.

    Participation is a function of the key and the step, so this is exact: nobody is ever left out.
    """
    algorithm, clients = program.values.algorithm, program.plan.clients
    period, offset = algorithm.sync.period or 1, algorithm.sync.offset
    syncs = np.arange(offset or period, steps + 1, period, dtype=np.int32)
    if algorithm.participation.everyone or syncs.size == 0:
        return None
    found = max(1, program.most_heard(keys, syncs))
    return found if found < 0.75 * clients else None
