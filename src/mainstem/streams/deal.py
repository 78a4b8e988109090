"""Deals: ways to assign rows to clients and steps. The result states which row client k gets at step t.

Every deal has `ends`: what happens when the rows of a client end before those of the others. It is "silent" and
gets no further samples, it begins again with its first row ("repeat"), or the stream ends for all ("cut").
"""

import abc
import dataclasses
from typing import Any

import numpy as np

from mainstem import check
from mainstem.errors import BadData
from mainstem.value import Value, integer, one_of, positive, value

NO_ROW = -1
SILENT, REPEAT, CUT = ENDS = "silent", "repeat", "cut"


class Dealt(abc.ABC):
    """An assignment of rows to steps and clients."""

    clients: int
    steps: int | None  # None: the rows are repeated without end
    gaps: bool  # whether a client can be without a row at a step

    @abc.abstractmethod
    def rows(self, seed: int, first: int, last: int) -> np.ndarray:
        """The rows of steps `first` to `last`, int32 [steps, clients]; `NO_ROW`: none."""

    @abc.abstractmethod
    def owner(self, row: int) -> str:
        """The client that gets a row, as text for error messages."""

    def shares(self) -> list[np.ndarray] | None:
        """The rows of each client, in its order; None if they depend on the run's seed."""
        return None


class Deal(Value):
    """A way to deal the rows of a dataset to clients."""

    @abc.abstractmethod
    def to(self, target: np.ndarray, keys: Any, clients: int | None) -> Dealt:
        """Deals the rows with this `target`; `keys` contains each row's client, if the data has keys."""


@value
class evenly(Deal):
    """Deals shuffled rows in turn and repeats them, each pass in a new order (Kwon et al. 2023, Section 5).

    The order is drawn from the run's seed. With `ends` "silent" or "cut" there is one pass.

    >>> evenly().to(np.zeros(4), None, clients=2).rows(seed=0, first=1, last=2).shape
    (2, 2)
    """

    ends: str = one_of(*ENDS, default=REPEAT)

    def to(self, target: np.ndarray, keys: Any, clients: int | None) -> Dealt:
        clients, count = _needed("evenly", clients), len(target)
        lengths = (count + np.arange(clients)) // clients  # of one pass, in increasing order
        return InTurn(clients, last_step(self.ends, lengths), has_gaps(self.ends, lengths), count)


@value
class by_label(Deal):
    """Label skew: deals each label's rows by a Dirichlet(alpha) draw; a smaller alpha gives more skew.

    Each client gets its own rows in a fixed shuffled order, and repeats them without end.

    >>> by_label(alpha=0.5).to(np.arange(100) % 10, None, clients=5).clients
    5
    """

    alpha: float = positive()
    seed: int = integer(default=0, least=0)
    ends: str = one_of(*ENDS, default=REPEAT)

    def to(self, target: np.ndarray, keys: Any, clients: int | None) -> Dealt:
        clients = _needed("by_label", clients)
        if not np.issubdtype(target.dtype, np.integer):
            raise BadData("by_label: wants integer labels, the target is " + str(target.dtype))
        draw, skew = np.random.default_rng(self.seed), np.full(clients, self.alpha)
        owner = np.empty(len(target), np.int64)
        for label in np.unique(target):
            mine = np.flatnonzero(target == label)
            owner[mine] = draw.choice(clients, len(mine), p=draw.dirichlet(skew))
        order = draw.permutation(len(target))
        shares = [order[owner[order] == k] for k in range(clients)]
        return _shared("by_label", shares, self.ends)


@value
class by_key(Deal):
    """One client per key, in sorted order; rows in their original order.

    >>> by_key().to(np.zeros(5), ["b", "a", "b", "b", "a"], clients=None).rows(0, 1, 3).tolist()
    [[1, 0], [4, 2], [-1, 3]]
    """

    ends: str = one_of(*ENDS, default=SILENT)

    def to(self, target: np.ndarray, keys: Any, clients: int | None) -> Dealt:
        if keys is None:
            raise BadData("by_key: the data has no key that names each row's client")
        if len(keys) != len(target):
            raise BadData(f"by_key: {len(keys)} keys but {len(target)} rows")
        names = np.unique(np.asarray(keys))
        if clients is not None and clients != len(names):
            wanted = f"be left out or {len(names)}, the keys"
            raise check.refuse("by_key", "clients", wanted, clients)
        shares = [np.flatnonzero(np.asarray(keys) == name) for name in names]
        return _shared("by_key", shares, self.ends)


@value
class in_time(Deal):
    """Contiguous in time: the first rows go to the first client, and so on.

    >>> in_time().to(np.zeros(5), None, clients=2).rows(0, 1, 3).tolist()
    [[0, 3], [1, 4], [2, -1]]
    """

    ends: str = one_of(*ENDS, default=SILENT)

    def to(self, target: np.ndarray, keys: Any, clients: int | None) -> Dealt:
        shares = np.array_split(np.arange(len(target)), _needed("in_time", clients))
        return _shared("in_time", shares, self.ends)


@dataclasses.dataclass(frozen=True)
class InTurn(Dealt):
    """All rows, dealt to the clients in turn, each pass in a new order."""

    clients: int
    steps: int | None
    gaps: bool
    count: int  # number of rows

    def rows(self, seed: int, first: int, last: int) -> np.ndarray:
        if self.steps is not None:
            order = _shuffled(self.count, seed, 0)
            short = -len(order) % self.clients
            order = np.concatenate([order, np.full(short, NO_ROW, np.int32)])
            return order.reshape(-1, self.clients)[first - 1 : last]
        begin, end = (first - 1) * self.clients, last * self.clients
        passes = range(begin // self.count, (end - 1) // self.count + 1)
        order = np.concatenate([_shuffled(self.count, seed, which) for which in passes])
        begin -= passes[0] * self.count
        return order[begin : begin + (last - first + 1) * self.clients].reshape(-1, self.clients)

    def owner(self, row: int) -> str:
        return "dealt to every client in turn"


def _shuffled(count: int, seed: int, which: int) -> np.ndarray:
    generator = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 0, which]))
    return generator.permutation(count).astype(np.int32)


@dataclasses.dataclass(frozen=True)
class Shared(Dealt):
    """Each client has its own rows."""

    clients: int
    steps: int | None
    gaps: bool
    order: np.ndarray  # the rows of client 0, then of client 1, ...
    begins: np.ndarray  # each client's first index in `order`
    lengths: np.ndarray

    def rows(self, seed: int, first: int, last: int) -> np.ndarray:
        steps = np.arange(first - 1, last)[:, None]
        found = self.order[self.begins + steps % self.lengths].astype(np.int32)
        return np.where(steps < self.lengths, found, NO_ROW) if self.gaps else found

    def owner(self, row: int) -> str:
        place = int(np.flatnonzero(self.order == row)[0])
        return f"client {int(np.searchsorted(self.begins, place, side='right')) - 1}"

    def shares(self) -> list[np.ndarray]:
        return np.split(self.order, self.begins[1:])


def _shared(owner: str, shares: list[np.ndarray], ends: str) -> Shared:
    lengths = np.array([len(share) for share in shares])
    if not lengths.all():
        empty = int(np.flatnonzero(lengths == 0)[0])
        raise BadData(f"{owner}: client {empty} of {len(shares)} gets no rows: take fewer clients")
    begins = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    place = np.concatenate(shares), begins, lengths
    return Shared(len(shares), last_step(ends, lengths), has_gaps(ends, lengths), *place)


def last_step(ends: str, lengths: np.ndarray) -> int | None:
    """The number of steps of a stream whose clients have so many rows; None: there is no end."""
    return {SILENT: int(lengths.max()), REPEAT: None, CUT: int(lengths.min())}[ends]


def has_gaps(ends: str, lengths: np.ndarray) -> bool:
    """Whether a client can be without a row at a step."""
    return ends == SILENT and bool(lengths.min() < lengths.max())


def _needed(owner: str, clients: int | None) -> int:
    return check.integer(owner, "clients", clients, least=1)
