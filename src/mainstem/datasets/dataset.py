"""One entry of the catalogue, as a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mainstem.datasets.arrays import Arrays
from mainstem.datasets.proof import Proof
from mainstem.datasets.source import Source
from mainstem.datasets.table import Table


class Dataset(NamedTuple):
    """Where a dataset comes from, how it is known to be right, and how it becomes a table."""

    name: str
    file: str
    task: str
    about: str
    licence: str
    sources: tuple[Source, ...]
    proof: Proof
    decode: Callable[[Arrays], Table]
    stand_in: Dataset | None = None
    """A partial copy to fall back on, with a warning, where the full one is not cached."""
