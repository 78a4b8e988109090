"""Streams from arrays in memory: the rows are on the device, and chunks contain only row indices."""

import abc
import functools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from mainstem.base import At, Sample, Sampler
from mainstem.errors import BadData, BadParameter
from mainstem.streams.deal import Deal, Dealt, by_key, evenly
from mainstem.streams.hosted import Hosted
from mainstem.value import leaf, part, static, value


class Table(NamedTuple):
    """Rows, and the way to deal them to clients."""

    features: np.ndarray
    target: np.ndarray
    keys: np.ndarray | None  # each row's client, if the data contains it
    deal: Deal


@value
class indexed(Sampler):
    """Sampler over rows on the device: a piece is the index of a row, or with `gaps` -1 for no sample.

    >>> indexed(np.eye(2), np.array([5, 6])).sample(1, None, None).hidden.tolist()
    6
    """

    features: Any = leaf()
    target: Any = leaf()
    gaps: bool = static(default=False)

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        features, target = jnp.asarray(self.features), jnp.asarray(self.target)
        if not self.gaps:
            return Sample(features[piece], target[piece])
        row, here = jnp.maximum(piece, 0), (jnp.asarray(piece) >= 0).astype(jnp.int32)
        return Sample(features[row], target[row], here)


def usual(keys: Any) -> Deal:
    """The deal of rows with these keys, if none is given."""
    return evenly() if keys is None else by_key()


class Rows(Hosted):
    """The rows of a table, dealt to clients; if `clients` is None, the deal determines their number."""

    @property
    @abc.abstractmethod
    def table(self) -> Table:
        """The rows, on the host."""

    def admit(self) -> None:
        object.__setattr__(self, "clients", self.dealt.clients)

    @functools.cached_property
    def dealt(self) -> Dealt:
        """Which row client k gets at step t."""
        owner, (shown, hidden, keys, deal) = type(self).__name__, self.table
        if len(shown) != len(hidden):
            raise BadData(f"{owner}: {len(shown)} rows of features but {len(hidden)} targets")
        if len(shown) == 0:
            raise BadData(f"{owner}: there are no rows")
        try:
            dealt = deal.to(hidden, keys, self.clients)
        except BadParameter as error:  # `clients` is a parameter of this stream, not of the deal
            _, _, text = str(error).partition(": ")
            raise BadParameter(f"{owner}: {text}", error.parameter) from None
        for name, array in (("features", shown), ("target", hidden)):
            _refuse_gaps(owner, name, array, dealt)
        return dealt

    @property
    def steps(self) -> int | None:
        """The number of steps; None: the rows are repeated without end."""
        return self.dealt.steps

    @property
    def device(self) -> Sampler:
        return indexed(self.table.features, self.table.target, self.dealt.gaps)

    def chunk(self, seed: int, first: int, last: int) -> Any:
        return self.dealt.rows(seed, first, last)

    def rows(self) -> Sample | None:
        return Sample(self.table.features, self.table.target)


def _numbers(owner: str, name: str, given: Any) -> np.ndarray:
    try:
        array = np.asarray(given)
    except ValueError:
        raise BadData(f"{owner}: {name} must have rows of equal length") from None
    if array.ndim == 0 or not (np.issubdtype(array.dtype, np.number) or array.dtype == bool):
        got = f"{array.dtype} of shape {array.shape}"
        raise BadData(f"{owner}: {name} must be rows of numbers, got {got}")
    return array


def _names(owner: str, name: str, given: Any) -> np.ndarray:
    """Keys as an array of strings or numbers, not of objects, so that equal keys have equal bytes."""
    array = np.asarray(given)
    return np.asarray(array.tolist()) if array.dtype == object else array


def _refuse_gaps(owner: str, name: str, array: np.ndarray, dealt: Dealt) -> None:
    """Raises an error for NaN and infinity that names the first such row and its client."""
    if not np.issubdtype(array.dtype, np.floating):
        return
    finite = np.isfinite(array)
    if finite.all():
        return
    row = int(np.argwhere(~finite)[0][0])
    bad = array[row][~finite[row]].flat[0] if array.ndim > 1 else array[row]
    raise BadData(f"{owner}: {name} row {row} ({dealt.owner(row)}) holds {bad}")


@value
class arrays(Rows):
    """Rows of `features` with their `target`, dealt to `clients`.

    `keys` contains each row's client: with keys the rows are dealt by key, else evenly, unless `deal` is given.

    >>> import numpy as np
    >>> stream = arrays(np.ones((10, 3)), np.zeros(10), clients=4)
    >>> stream.chunk(0, 1, 5).shape
    (5, 4)
    """

    features: Any = leaf(checked=_numbers)
    target: Any = leaf(checked=_numbers)
    clients: Any = static(default=None)
    deal: Deal | None = part(Deal, "evenly()", default=None)
    keys: Any = leaf(default=None, checked=_names)

    @property
    def table(self) -> Table:
        return Table(self.features, self.target, self.keys, self.deal or usual(self.keys))
