"""Runs groups of rollouts in parallel threads, on a CPU only."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from mainstem.engines.simulate.devices import Layout


def parts(count: int, spread: Layout) -> int:
    """The number of equal parts of `count` rollouts to compute at once: one for each core, if possible."""
    if jax.default_backend() != "cpu" or spread.mesh is not None:
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(n for n in range(1, (cores or 1) + 1) if count % n == 0)


def shared_out(seeds: list[int], spread: Layout) -> list[list[int]]:
    """The seeds in equal groups, as many as there are cores if possible."""
    size = len(seeds) // parts(len(seeds), spread)
    return [seeds[n : n + size] for n in range(0, len(seeds), size)]


@contextlib.contextmanager
def pool(count: int, dtype: str) -> Iterator[Callable[..., Callable[[], list[Any]]]]:
    """Yields `each(start, finish, *lists)`, which starts all entries at once and returns a function that waits
    for them.

    `start` gives a device its work, which is done when `finish` returns. With several entries, each has a
    thread for both, because XLA computes in the thread that waits. A single one is not waited for.
    """

    def alone(start: Any, finish: Any, *lists: Sequence[Any]) -> Callable[[], list[Any]]:
        under_way = [start(*given) for given in zip(*lists, strict=True)]
        return lambda: under_way

    if count == 1:
        yield alone
        return

    def precise(start: Any, finish: Any, *given: Any) -> Any:
        with jax.enable_x64(dtype == "float64"):  # a setting of the thread
            return finish(start(*given))

    with ThreadPoolExecutor(count) as threads:

        def each(start: Any, finish: Any, *lists: Sequence[Any]) -> Callable[[], list[Any]]:
            given = list(zip(*lists, strict=True))
            under_way = [threads.submit(precise, start, finish, *one) for one in given]
            return lambda: [one.result() for one in under_way]

        yield each


def whole(states: Sequence[Any]) -> Any:
    """The groups' states as one, with the seeds' axis first."""
    if len(states) == 1:
        return states[0]
    return jax.tree.map(lambda *x: jax.numpy.concatenate(x), *states)


def parted(state: Any, count: int) -> list[Any]:
    """Splits a state of all seeds into one for each group."""
    if count == 1:
        return [state]

    def part(n: int) -> Any:
        return jax.tree.map(lambda x: x[n * len(x) // count : (n + 1) * len(x) // count], state)

    return [part(n) for n in range(count)]


def joined(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The groups' rows as one, with the seeds' axis first."""
    if len(rows) == 1:
        return rows[0]
    return {name: np.concatenate([each[name] for each in rows]) for name in rows[0]}
