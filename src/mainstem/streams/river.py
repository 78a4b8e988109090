"""Streams from the datasets and generators of River."""

import itertools
import numbers
from typing import Any

import numpy as np

from mainstem import check
from mainstem.errors import BadData
from mainstem.streams.arrays import arrays
from mainstem.streams.hashed import hashed


def river(dataset: Any, clients: int, count: int | None = None, width: int | None = None) -> arrays:
    """The samples of a dataset or a generator of River, dealt in turn, so that all clients are at the same time.

    `count` samples are taken (None: all, for a dataset with an end). Samples with words, or with keys that change,
    are hashed to `width` features.

    >>> from river.datasets import synth
    >>> stream = river(synth.SEA(seed=1), clients=4, count=400)
    >>> stream.clients, stream.steps, stream.labels
    (4, 100, (False, True))
    """
    clients = check.integer("river", "clients", clients, least=1)
    task = getattr(dataset, "task", None)
    if task is None:
        raise check.refuse("river", "dataset", "be a dataset of River", dataset)
    if count is None and getattr(dataset, "n_samples", None) is None:
        raise check.refuse("river", "count", "be given for a generator without an end", count)
    found = list(itertools.islice(dataset, count))
    rows, targets = [x for x, _ in found], [y for _, y in found]
    classes = "classification" in str(task).lower()
    keys = np.arange(len(rows)) % clients
    if width is not None:
        return hashed(rows, targets, width, keys=keys, classes=classes)
    return arrays(_dense(rows), targets, keys=keys, classes=classes)


def _dense(rows: list[dict[Any, Any]]) -> np.ndarray:
    """The rows as an array, with the keys of the first in sorted order."""
    names = sorted(rows[0], key=str) if rows else []
    for n, row in enumerate(rows):
        if row.keys() != set(names):
            raise BadData(
                f"river: sample {n} has other keys than the first: give width, to hash them"
            )
        for name, given in row.items():
            if not isinstance(given, numbers.Real | np.bool_):
                raise BadData(f"river: sample {n}: {name} is {given!r}: give width, to hash it")
    return np.array([[float(row[name]) for name in names] for row in rows], np.float64)
