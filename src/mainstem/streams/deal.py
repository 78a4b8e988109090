"""Deals: ways to assign rows to clients and steps. The result computes which row client k gets at step t.

Every deal has `ends`: what happens when the rows of a client end before those of the others. It is "silent" and
gets no further samples, it begins again with its first row ("repeat"), or the stream ends for all ("cut").
"""

import abc
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check, random
from mainstem.base import Drawn
from mainstem.errors import BadData
from mainstem.streams.permutation import permuted
from mainstem.value import Value, integer, leaf, one_of, positive, set_field, static, value

NO_ROW = -1
SILENT, REPEAT, CUT = ENDS = "silent", "repeat", "cut"


class Dealt(Value):
    """An assignment of rows to steps and clients, which any device can compute for itself."""

    @property
    @abc.abstractmethod
    def clients(self) -> int:
        """The number of clients."""

    @property
    @abc.abstractmethod
    def steps(self) -> int | None:
        """The number of steps; None: the rows are repeated without end."""

    @property
    @abc.abstractmethod
    def gaps(self) -> bool:
        """Whether a client can be without a row at a step."""

    @abc.abstractmethod
    def row(self, t: Any, k: Any, drawn: Any) -> Any:
        """The row of client k at step t, `NO_ROW` for none; `drawn` is the common part of what a run draws."""

    @abc.abstractmethod
    def owner(self, row: int) -> str:
        """The client that gets a row, as text for error messages."""

    def drawn(self, seed: int) -> Drawn | None:
        """What a run with this seed draws once; None: the rows do not depend on the seed."""
        return None

    def shares(self) -> list[np.ndarray] | None:
        """The rows of each client, in its order; None if they depend on the run's seed."""
        return None

    def rows(self, seed: int, first: int, last: int) -> np.ndarray:
        """The rows of steps `first` to `last`, int32 [steps, clients]; `NO_ROW`: none."""
        return np.asarray(_rows(self, self.drawn(seed), jnp.int32(first), last - first + 1))


@functools.partial(jax.jit, static_argnums=3)
def _rows(dealt: Dealt, drawn: Drawn | None, first: Any, count: int) -> Any:
    common = None if drawn is None else drawn.common
    t, k = first + jnp.arange(count, dtype=jnp.int32), jnp.arange(dealt.clients, dtype=jnp.int32)
    at_step = jax.vmap(dealt.row, in_axes=(None, 0, None))
    return jax.vmap(at_step, in_axes=(0, None, None))(t, k, common)


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
        return InTurn(_needed("evenly", clients), len(target), self.ends)


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
        return shared("by_label", shares, self.ends)


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
        return shared("by_key", shares, self.ends)


@value
class in_time(Deal):
    """Contiguous in time: the first rows go to the first client, and so on.

    >>> in_time().to(np.zeros(5), None, clients=2).rows(0, 1, 3).tolist()
    [[0, 3], [1, 4], [2, -1]]
    """

    ends: str = one_of(*ENDS, default=SILENT)

    def to(self, target: np.ndarray, keys: Any, clients: int | None) -> Dealt:
        shares = np.array_split(np.arange(len(target)), _needed("in_time", clients))
        return shared("in_time", shares, self.ends)


@value
class InTurn(Dealt):
    """All rows, dealt to the clients in turn, each pass in a new order.

    >>> InTurn(clients=2, count=4, ends=REPEAT).rows(seed=0, first=1, last=4).shape
    (4, 2)
    """

    clients: int = integer(least=1)
    count: int = integer(least=0)  # of rows
    ends: str = one_of(*ENDS)

    @property
    def steps(self) -> int | None:
        return last_step(self.ends, self._lengths)

    @property
    def gaps(self) -> bool:
        return has_gaps(self.ends, self._lengths)

    @property
    def _lengths(self) -> np.ndarray:
        """The fewest and the most rows of a client in one pass."""
        return np.array([self.count // self.clients, -(-self.count // self.clients)])

    def drawn(self, seed: int) -> Drawn:
        return Drawn(random.root(seed))

    def row(self, t: Any, k: Any, drawn: Any) -> Any:
        number, place = self._turn(t, k)
        key = random.fold(drawn, random.DEAL, number)
        found = permuted(key, place, self.count)
        return found if self.steps is None else jnp.where(number == 0, found, NO_ROW)

    def _turn(self, t: Any, k: Any) -> tuple[Any, Any]:
        """The number of the pass, and the place in it, of the row of client k at step t.

        They are quotient and remainder of (t - 1) clients + k by count. That number can have more than 32 bits,
        so it is divided as by hand, with digits as large as 32 bits allow.
        """
        count = np.uint32(self.count)
        several, rest = divmod(self.clients, self.count)
        before = jnp.asarray(t - 1).astype(jnp.uint32)
        width = 32 - self.count.bit_length()
        number = place = jnp.uint32(0)
        for shift in reversed(range(0, 31, width)):
            digit = (before >> shift) & np.uint32(2**width - 1)
            moved, added = place << width, digit * np.uint32(rest)
            number = (number << width) + moved // count + added // count
            place = moved % count + added % count
            number, place = number + place // count, place % count
        place = place + jnp.asarray(k).astype(jnp.uint32)
        return number + before * np.uint32(several) + place // count, place % count

    def owner(self, row: int) -> str:
        return "dealt to every client in turn"


@value
class Shared(Dealt):
    """Each client has its own rows.

    >>> Shared(np.array([4, 5, 6]), np.array([0, 1]), np.array([1, 2]), ends=REPEAT).rows(0, 1, 2).tolist()
    [[4, 5], [4, 6]]
    """

    order: Any = leaf()  # the rows of client 0, then of client 1, ...
    begins: Any = leaf()  # each client's first index in `order`
    lengths: Any = leaf()
    ends: str = one_of(*ENDS)
    unequal: bool = static(default=False)  # whether lengths differ

    def admit(self) -> None:
        set_field(self, "unequal", bool(np.min(self.lengths) < np.max(self.lengths)))

    @property
    def clients(self) -> int:
        """The number of clients."""
        return len(self.begins)

    @property
    def steps(self) -> int | None:
        return last_step(self.ends, self.lengths)

    @property
    def gaps(self) -> bool:
        return self.ends == SILENT and self.unequal

    def row(self, t: Any, k: Any, drawn: Any) -> Any:
        length = jnp.asarray(self.lengths)[k]
        place = jnp.asarray(self.begins)[k] + (t - 1) % length
        found = jnp.asarray(self.order)[place]
        return jnp.where(t <= length, found, NO_ROW) if self.gaps else found

    def owner(self, row: int) -> str:
        place = int(np.flatnonzero(self.order == row)[0])
        return f"client {int(np.searchsorted(self.begins, place, side='right')) - 1}"

    def shares(self) -> list[np.ndarray]:
        return np.split(self.order, self.begins[1:])


def shared(owner: str, shares: list[np.ndarray], ends: str) -> Shared:
    """Deals each client its share, in this order."""
    lengths = np.array([len(share) for share in shares])
    if not lengths.all():
        empty = int(np.flatnonzero(lengths == 0)[0])
        raise BadData(f"{owner}: client {empty} of {len(shares)} gets no rows: take fewer clients")
    begins = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    order = np.concatenate(shares).astype(np.int32)
    return Shared(order, begins.astype(np.int32), lengths.astype(np.int32), ends)


def last_step(ends: str, lengths: np.ndarray) -> int | None:
    """The number of steps of a stream whose clients have so many rows; None: there is no end."""
    return {SILENT: int(lengths.max()), REPEAT: None, CUT: int(lengths.min())}[ends]


def has_gaps(ends: str, lengths: np.ndarray) -> bool:
    """Whether a client can be without a row at a step."""
    return ends == SILENT and bool(lengths.min() < lengths.max())


def _needed(owner: str, clients: int | None) -> int:
    return check.integer(owner, "clients", clients, least=1)
