"""Real datasets, fetched once from their public source and verified at every load.

    >>> from mainstem import datasets
    >>> datasets.names()[:3]
    ['mnist', 'usps', 'letter']

The cache is the folder `$MAINSTEM_DATA`, or mainstem's folder among the user's caches. The package
contains no data.
"""

import warnings
from pathlib import Path
from typing import NamedTuple

from mainstem.datasets import cache
from mainstem.datasets.catalogue import DATASETS, find
from mainstem.datasets.dataset import Dataset
from mainstem.datasets.decision_log import Log
from mainstem.datasets.fetch import fetch
from mainstem.datasets.table import Table
from mainstem.errors import BadParameter, DataUnavailable, MainstemError

__all__ = ["Description", "Log", "Table", "describe", "get", "load", "load_log", "names", "status"]


class Description(NamedTuple):
    """Facts about a dataset, available without loading it."""

    name: str
    task: str
    about: str
    licence: str
    sources: tuple[str, ...]


def names() -> list[str]:
    """The names of all datasets that can be loaded."""
    return list(DATASETS)


def describe(name: str) -> Description:
    """Task, content, licence and sources of a dataset."""
    entry = find(name)
    where = tuple(source.where for source in entry.sources)
    return Description(entry.name, entry.task, entry.about, entry.licence, where)


def status(name: str) -> str:
    """The state of a dataset in the cache.

    "cached", "missing", "broken" (delete the folder), "partial" (only a stand-in is cached) or "unchecked"
    (present, but only `mainstem[lab]` can read it).
    """
    entry = find(name)
    state = _state(entry)
    if state == "missing" and entry.stand_in and _state(entry.stand_in) == "cached":
        return "partial"
    return state


def get(name: str) -> Path:
    """Fetches the full dataset unless it is cached and correct; returns its folder."""
    entry = find(name)
    if cache.read(entry) is None:
        fetch(entry)
    return cache.folder(entry)


def load(name: str) -> Table:
    """The dataset as a table; fetches it first if necessary.

    A cached stand-in is preferred to a download, with a warning; `get` fetches the full set.
    """
    entry = find(name)
    if entry.decode is None:
        raise BadParameter(f"datasets: {name} is a log, not a table; load_log({name!r}) loads it")
    arrays = cache.read(entry)
    if arrays is None and entry.stand_in and entry.stand_in.decode:
        arrays = cache.read(entry.stand_in)
        if arrays is not None:
            partial = (
                f"{name} is partial here ({entry.stand_in.about}); get({name!r}) fetches it all"
            )
            warnings.warn(partial, stacklevel=2)
            return entry.stand_in.decode(arrays)
    return entry.decode(fetch(entry) if arrays is None else arrays)


def load_log(name: str) -> Log:
    """The dataset as a log of decisions; fetches it first if necessary."""
    entry = find(name)
    if entry.decode_log is None:
        raise BadParameter(f"datasets: {name} is a table, not a log; load({name!r}) loads it")
    arrays = cache.read(entry)
    return entry.decode_log(fetch(entry) if arrays is None else arrays)


def _state(entry: Dataset) -> str:
    try:
        return "missing" if cache.read(entry) is None else "cached"
    except DataUnavailable:
        return "broken"
    except MainstemError:
        return "unchecked"
