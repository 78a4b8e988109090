"""Streams made of other streams: features in two groups, clients that sometimes see nothing."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check, random
from mainstem.base import At, Sample, Stream
from mainstem.errors import BadData
from mainstem.spec import recorded


@recorded
def split(stream: Stream, shared: Any, own: Any, overlap: bool = False) -> Stream:
    """`stream` with its features as (global, local), for `problems.personal`.

    `shared` lists the columns that all clients share, `own` the local ones: one list, or one for each
    client (of any length; shorter ones are padded with zeros). A column in both groups, or in
    neither, is refused; ``overlap=True`` allows the former.

    >>> import numpy as np
    >>> from mainstem.streams import arrays
    >>> rows = arrays(np.ones((6, 3)), np.zeros(6), clients=2)
    >>> parted = split(rows, shared=[0], own=[[1], [1, 2]])
    >>> parted.clients
    2
    """
    check.instance("split", "stream", stream, Stream, "digits(clients=10)")
    width = _width(stream)
    common = _columns("shared", shared, width)
    lists = (Sequence, np.ndarray)
    ragged = isinstance(own, lists) and len(own) and all(isinstance(each, lists) for each in own)
    if ragged and len(own) != stream.clients:
        wanted = f"have a list for each of {stream.clients} clients"
        raise check.refuse("split", "own", wanted, own)
    locals_ = [_columns("own", each, width) for each in (own if ragged else [own])]
    for k, each in enumerate(locals_):
        both = np.intersect1d(common, each)
        if both.size and not overlap:
            whose = f" (client {k})" if ragged else ""
            wanted = f"share no column with shared{whose}, or say overlap=True"
            raise check.refuse("split", "own", wanted, both.tolist())
    left = np.setdiff1d(np.arange(width), np.concatenate([common, *locals_]))
    if left.size:
        raise check.refuse("split", "own", f"leave out none of {width} columns", left.tolist())
    most = max(len(each) for each in locals_)
    places = np.zeros((len(locals_), most), np.int32)
    real = np.zeros((len(locals_), most), bool)
    for k, each in enumerate(locals_):
        places[k, : len(each)], real[k, : len(each)] = each, True

    def parted(shown: Any, k: Any) -> Any:
        mine = jnp.asarray(places)[k], jnp.asarray(real)[k]
        return shown[common], jnp.where(mine[1], shown[mine[0]], 0)

    def sample(resident: Any, piece: Any, at: At) -> Sample:
        whole = stream.sample(resident, piece, at)
        return whole._replace(shown=parted(whole.shown, at.k if ragged else 0))

    def rows() -> Sample | None:
        known = stream.rows()
        if known is None or ragged:
            return None
        features = np.asarray(known.shown)
        return known._replace(shown=(features[:, common], features[:, places[0]]))

    return stream._replace(sample=sample, rows=rows, expected=None)


def _width(stream: Stream) -> int:
    """How many features a sample has."""
    known = stream.rows()
    shown = (_first(stream) if known is None else known).shown
    if not hasattr(shown, "ndim") or shown.ndim != 2:
        raise BadData("split: wants samples with one vector of features")
    return int(shown.shape[1])


def _first(stream: Stream) -> Sample:
    """The first samples of all clients, as shapes."""
    pieces = jax.tree.map(lambda x: np.asarray(x)[0], stream.chunk(0, 1, 1))
    clients = stream.clients
    at = At(jnp.int32(1), jnp.arange(clients), jnp.zeros((clients, 2), jnp.uint32))
    return jax.eval_shape(stream.samples, stream.known(0), pieces, at)


def _columns(name: str, value: Any, width: int) -> np.ndarray:
    wanted = f"list different columns from 0 to {width - 1}"
    try:
        columns = np.asarray(value)
    except ValueError:
        raise check.refuse("split", name, wanted, value) from None
    fine = columns.ndim == 1 and columns.size and np.issubdtype(columns.dtype, np.integer)
    if not fine or columns.min() < 0 or columns.max() >= width:
        raise check.refuse("split", name, wanted, value)
    if len(np.unique(columns)) != columns.size:
        raise check.refuse("split", name, wanted, value)
    return columns


@recorded
def sometimes(stream: Stream, rate: Any) -> Stream:
    """`stream` in which each client sees something only with probability `rate` (one, or one each).

    Where a client sees nothing its loss is zero, it learns nothing and its metrics do not count
    (Agarwal et al. 2020, Section 2); simulate's `weights` = T / N_i make up for it.

    >>> from mainstem.streams import alternating
    >>> sometimes(alternating(clients=3), rate=[1.0, 0.5, 0.1]).clients
    3
    """
    check.instance("sometimes", "stream", stream, Stream, "digits(clients=10)")
    chance = check.rates("sometimes", "rate", rate)
    if chance.ndim and chance.size != stream.clients:
        wanted = f"have one entry for each of {stream.clients} clients"
        raise check.refuse("sometimes", "rate", wanted, rate)
    chances = np.broadcast_to(chance, stream.clients).astype(np.float32)

    def sample(resident: Any, piece: Any, at: At) -> Sample:
        whole = stream.sample(resident, piece, at)
        luck = random.uniform(random.fold(at.key, 1), dtype=jnp.float32)
        here = (luck < jnp.asarray(chances)[at.k]).astype(jnp.int32)
        return whole._replace(count=here if whole.count is None else here * whole.count)

    return stream._replace(sample=sample, rows=lambda: None, expected=None)
