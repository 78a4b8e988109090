"""Dataset: one entry of the catalogue, as a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from mainstem.datasets.decision_log import Log
from mainstem.datasets.named_arrays import Arrays
from mainstem.datasets.proof import Proof
from mainstem.datasets.source import Source
from mainstem.datasets.table import Table


class Dataset(NamedTuple):
    """The sources of a dataset, how its arrays are verified, and how they become a table or a log."""

    name: str
    file: str
    task: str
    about: str
    licence: str
    sources: tuple[Source, ...]
    proof: Proof
    decode: Callable[[Arrays], Table] | None = None
    """None for a log."""
    decode_log: Callable[[Arrays], Log] | None = None
    """None for a table."""
    stand_in: Dataset | None = None
    """A partial copy to fall back on, with a warning, where the full one is not cached."""
    folder: str = ""
    """Its folder in the cache, where that is not the name."""
    beside: Mapping[str, str] = MappingProxyType({})
    """Further files in the folder: by x, the one that holds the arrays named `x/...`."""
