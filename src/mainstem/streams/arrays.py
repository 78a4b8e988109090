"""Streams from arrays in memory: the rows are on the device, which computes whose they are."""

import abc
import functools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from mainstem import check
from mainstem.base import At, Drawn, Sample, Sampler
from mainstem.errors import BadData, BadParameter
from mainstem.parts.missing import Missing
from mainstem.parts.scaling import Scale, prepared, seen
from mainstem.streams.columns import is_empty
from mainstem.streams.deal import Deal, Dealt, by_key, evenly
from mainstem.streams.hosted import Hosted
from mainstem.streams.labels import Classes, Labels, as_classes, classes_field, classes_of, no_label
from mainstem.streams.sparse import from_scipy, sparse_rows
from mainstem.value import leaf, part, static, value


class Table(NamedTuple):
    """Rows, and the way to deal them to clients."""

    features: Any  # an array, or sparse rows
    target: np.ndarray
    keys: np.ndarray | None  # each row's client, if the data contains it
    deal: Deal


@value
class indexed(Sampler):
    """Sampler over rows on the device: `dealt` computes the row of a client at a step.

    >>> from mainstem.streams.deal import in_time
    >>> rows = indexed(np.eye(2), np.array([5, 6]), in_time().to(np.zeros(2), None, clients=2))
    >>> rows.sample((), At(1, 1, None), None).hidden.tolist()
    6
    """

    features: Any = leaf()
    target: Any = leaf()
    dealt: Dealt = leaf()

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        row = self.dealt.row(at.t, at.k, None if drawn is None else drawn.common)
        here = (row >= 0).astype(jnp.int32) if self.dealt.gaps else None
        row = jnp.maximum(row, 0) if self.dealt.gaps else row
        sparse = isinstance(self.features, sparse_rows)
        shown = self.features.row(row) if sparse else jnp.asarray(self.features)[row]
        return Sample(shown, jnp.asarray(self.target)[row], here)


def usual(keys: Any) -> Deal:
    """The deal of rows with these keys, if none is given."""
    return evenly() if keys is None else by_key()


class Rows(Hosted):
    """The rows of a table, dealt to clients; if `clients` is None, the deal determines their number."""

    missing: Missing | None = None  # how missing features are filled
    scale: Scale | None = None  # how features are scaled

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
        known = shown.numbers if isinstance(shown, sparse_rows) else shown
        _refuse_gaps(owner, "features", known, dealt, self.missing is not None)
        _refuse_gaps(owner, "target", hidden, dealt)
        return dealt

    @functools.cached_property
    def features_prepared(self) -> np.ndarray:
        """The features, filled and scaled from the earlier rows of the same client."""
        shown, missing, scale = self.table.features, self.missing, self.scale
        if missing is None and scale is None:
            return shown
        shares = self.dealt.shares()
        if shares is None or isinstance(shown, sparse_rows) or shown.ndim != 2:
            name = "scale" if missing is None else "missing"
            wanted = "be left out unless each client has its own dense rows, as dealt by_key() or in_time()"
            raise check.refuse(
                type(self).__name__, name, wanted, scale if missing is None else missing
            )
        width = shown.shape[1] if missing is None else missing.width(shown.shape[1])
        found = np.empty((len(shown), width), np.result_type(shown, np.float32))
        for rows in shares:
            found[rows] = prepared(shown[rows].astype(found.dtype), missing, scale)
        return found

    def seen_by(self, k: int, steps: int) -> dict[str, np.ndarray] | None:
        shown, shares = self.table.features, self.dealt.shares()
        if shares is None or isinstance(shown, sparse_rows):
            return None
        rows = shown[shares[k][:steps]].astype(np.result_type(shown, np.float32))
        return seen(rows, self.missing, self.scale)

    @property
    def steps(self) -> int | None:
        """The number of steps; None: the rows are repeated without end."""
        return self.dealt.steps

    @property
    def names(self) -> tuple[str, ...] | None:
        """The key of each client, if the rows are dealt by key."""
        keys, shares = self.table.keys, self.dealt.shares()
        if keys is None or shares is None or not isinstance(self.table.deal, by_key):
            return None
        return tuple(str(keys[rows[0]]) for rows in shares)

    @property
    def device(self) -> Sampler:
        return indexed(self.features_prepared, self.table.target, self.dealt)

    def drawn(self, seed: int) -> Drawn | None:
        return self.dealt.drawn(seed)

    def places(self, seed: int, first: int, last: int) -> np.ndarray:
        return self.dealt.rows(seed, first, last)

    def rows(self) -> Sample | None:
        if isinstance(self.table.features, sparse_rows):
            return None
        return Sample(self.features_prepared, self.table.target)

    @property
    def targets(self) -> Any:
        return lambda: self.table.target


def _features(owner: str, name: str, given: Any) -> Any:
    """Rows of numbers; a sparse matrix of SciPy becomes sparse rows."""
    if isinstance(given, sparse_rows):
        return given
    return from_scipy(given) if hasattr(given, "tocsr") else _numbers(owner, name, given)


def _numbers(owner: str, name: str, given: Any) -> np.ndarray:
    try:
        array = np.asarray(given)
    except ValueError:
        raise BadData(f"{owner}: {name} must have rows of equal length") from None
    if array.ndim == 0 or not (np.issubdtype(array.dtype, np.number) or array.dtype == bool):
        got = f"{array.dtype} of shape {array.shape}"
        raise BadData(f"{owner}: {name} must be rows of numbers, got {got}")
    return array


def _target(owner: str, name: str, given: Any) -> np.ndarray:
    """Numbers, or labels: words and truth values."""
    array = np.asarray(given)
    if array.dtype.kind not in "OUS" or array.ndim != 1:
        return _numbers(owner, name, array)
    _check_labels(owner, array)
    return np.asarray(array.tolist())


def _check_labels(owner: str, target: np.ndarray) -> None:
    found = target.tolist()
    for row, label in enumerate(found):
        if no_label(label):
            raise BadData(
                f"{owner}: target row {row} holds {label}, not an integer label or a word"
            )
    classes_of(owner, found)


def _names(owner: str, name: str, given: Any) -> np.ndarray:
    """Keys as an array of strings or numbers, not of objects, so that equal keys have equal bytes."""
    array = np.asarray(given)
    found = array.tolist()
    for row, key in enumerate(found if array.ndim == 1 else []):
        if is_empty(key):
            raise BadData(f"{owner}: {name} row {row} is empty: whose row is it?")
    return np.asarray(found) if array.dtype == object else array


def _refuse_gaps(
    owner: str, name: str, array: np.ndarray, dealt: Dealt, filled: bool = False
) -> None:
    """Raises an error for NaN (unless it is filled) and infinity that names the first such row and its client."""
    if not np.issubdtype(array.dtype, np.floating):
        return
    finite = ~np.isinf(array) if filled else np.isfinite(array)
    if finite.all():
        return
    row = int(np.argwhere(~finite)[0][0])
    bad = array[row][~finite[row]].flat[0] if array.ndim > 1 else array[row]
    raise BadData(f"{owner}: {name} row {row} ({dealt.owner(row)}) holds {bad}")


@value
class arrays(Rows):
    """Rows of `features` with their `target`, dealt to `clients`; the features may be a sparse matrix of SciPy.

    `keys` contains each row's client: with keys the rows are dealt by key, else evenly, unless `deal` is given.
    A target of words or truth values is a label, and with `classes` one of numbers too; `labels` has the label
    of each class, in sorted order or in that of `classes`. Missing features are refused, or filled by the part
    `missing`; the part `scale` scales features.

    >>> import numpy as np
    >>> stream = arrays(np.ones((10, 3)), np.zeros(10), clients=4)
    >>> stream.places(seed=0, first=1, last=5).shape
    (5, 4)
    >>> arrays(np.ones((3, 2)), ["on", "off", "on"], clients=1).labels
    ('off', 'on')
    """

    features: Any = leaf(checked=_features)
    target: Any = leaf(checked=_target)
    clients: Any = static(default=None)
    deal: Deal | None = part(Deal, "evenly()", default=None)
    keys: Any = leaf(default=None, checked=_names)
    classes: Classes = classes_field()
    missing: Missing | None = part(Missing, "last_value()", default=None)
    scale: Scale | None = part(Scale, "standardised()", default=None)

    def admit(self) -> None:
        if self.classes:
            _check_labels("arrays", self.target)
        super().admit()
        _ = self.features_prepared

    @functools.cached_property
    def labels(self) -> Labels | None:
        """The label of each class, if it is not the number of the class."""
        if not self._classified:
            return None
        return classes_of("arrays", np.unique(self.target).tolist(), self.classes or True)

    @functools.cached_property
    def table(self) -> Table:
        """The rows, with labels as classes."""
        target = as_classes(self.target, self.labels) if self._classified else self.target
        return Table(self.features, target, self.keys, self.deal or usual(self.keys))

    @property
    def _classified(self) -> bool:
        return bool(self.classes) or self.target.dtype.kind in "bUS"
