"""Ways to deal rows to clients. A deal turns rows into a table: which row client k gets at step t."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mainstem import check
from mainstem.errors import BadData
from mainstem.spec import UNRECORDED, Spec, recorded


class Dealt(NamedTuple):
    """Rows by step and client."""

    clients: int
    steps: int | None  # None: the rows are repeated for ever
    rows: Callable[[int, int, int], np.ndarray]  # (seed, first, last) -> int32 [steps, clients]
    owner: Callable[[int], str]  # who gets a row, in words


class Deal(NamedTuple):
    """`to(target, keys, clients)` deals the rows of a dataset; `keys` name each row's client."""

    to: Callable[[np.ndarray, Any, int | None], Dealt]
    spec: Spec = UNRECORDED


@recorded
def evenly() -> Deal:
    """Shuffled, repeated and dealt in turn (Kwon et al. 2023, Section 5): every pass in a new order.

    The order comes from the run's seed.
    """

    def to(target: np.ndarray, keys: Any, clients: int | None) -> Dealt:
        count, clients = len(target), _needed("evenly", clients)

        def rows(seed: int, first: int, last: int) -> np.ndarray:
            begin, end = (first - 1) * clients, last * clients
            passes = range(begin // count, (end - 1) // count + 1)
            order = np.concatenate([_shuffled(count, seed, which) for which in passes])
            begin -= passes[0] * count
            return order[begin : begin + (last - first + 1) * clients].reshape(-1, clients)

        return Dealt(clients, None, rows, owner=lambda row: "dealt to every client in turn")

    return Deal(to)


def _shuffled(count: int, seed: int, which: int) -> np.ndarray:
    generator = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 0, which]))
    return generator.permutation(count).astype(np.int32)


@recorded
def by_label(alpha: float, seed: int = 0) -> Deal:
    """Label-skewed: each label's rows are shared out by a Dirichlet(alpha) draw; small is skewed.

    Each client goes through its own rows again and again, in a fixed shuffled order.
    """
    alpha = check.positive("by_label", "alpha", alpha)
    seed = check.integer("by_label", "seed", seed, least=0)

    def to(target: np.ndarray, keys: Any, clients: int | None) -> Dealt:
        clients = _needed("by_label", clients)
        if not np.issubdtype(target.dtype, np.integer):
            raise BadData("by_label: wants integer labels, the target is " + str(target.dtype))
        draw = np.random.default_rng(seed)
        owner = np.empty(len(target), np.int64)
        for label in np.unique(target):
            mine = np.flatnonzero(target == label)
            owner[mine] = draw.choice(clients, len(mine), p=draw.dirichlet(np.full(clients, alpha)))
        order = draw.permutation(len(target))
        shares = [order[owner[order] == k] for k in range(clients)]
        return _shared("by_label", shares, repeat=True)

    return Deal(to)


@recorded
def by_key() -> Deal:
    """Each key a client, in the order of the keys; rows in the order they came; nothing repeated."""

    def to(target: np.ndarray, keys: Any, clients: int | None) -> Dealt:
        if keys is None:
            raise BadData("by_key: the data has no key that names each row's client")
        if len(keys) != len(target):
            raise BadData(f"by_key: {len(keys)} keys but {len(target)} rows")
        names = np.unique(np.asarray(keys))
        if clients is not None and clients != len(names):
            raise check.refuse(
                "by_key", "clients", f"be left out or {len(names)}, the keys", clients
            )
        shares = [np.flatnonzero(np.asarray(keys) == name) for name in names]
        return _shared("by_key", shares, repeat=False)

    return Deal(to)


@recorded
def in_time() -> Deal:
    """Contiguous in time: the first stretch of rows to the first client, and so on; nothing repeated."""

    def to(target: np.ndarray, keys: Any, clients: int | None) -> Dealt:
        shares = np.array_split(np.arange(len(target)), _needed("in_time", clients))
        return _shared("in_time", shares, repeat=False)

    return Deal(to)


def _shared(owner: str, shares: list[np.ndarray], repeat: bool) -> Dealt:
    """Each client its own rows: for ever, or as long as all have some."""
    lengths = np.array([len(share) for share in shares])
    if not lengths.all():
        empty = int(np.flatnonzero(lengths == 0)[0])
        raise BadData(f"{owner}: client {empty} of {len(shares)} gets no rows: take fewer clients")
    together = np.concatenate(shares)
    begins = np.concatenate([[0], np.cumsum(lengths)[:-1]])

    def rows(seed: int, first: int, last: int) -> np.ndarray:
        turn = np.arange(first - 1, last)[:, None] % lengths
        return together[begins + turn].astype(np.int32)

    def holder(row: int) -> str:
        place = int(np.flatnonzero(together == row)[0])
        return f"client {int(np.searchsorted(begins, place, side='right')) - 1}"

    return Dealt(len(shares), None if repeat else int(lengths.min()), rows, holder)


def _needed(owner: str, clients: int | None) -> int:
    return check.integer(owner, "clients", clients, least=1)
