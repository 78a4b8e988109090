"""Streams that wrap other streams: features in two groups, clients without a sample at some steps."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from mainstem import check, random
from mainstem.base import At, Drawn, Sample, Sampler, Stream, constant, of_client
from mainstem.errors import BadData
from mainstem.replay import first_shapes
from mainstem.streams.hosted import Hosted
from mainstem.value import flag, leaf, part, rates, static, value

EXAMPLE = "digits(clients=10)"


class Wrapped(Hosted):
    """A stream that changes the samples of another stream, and nothing else."""

    stream: Stream

    @property
    def clients(self) -> int:
        """The number of clients of the wrapped stream."""
        return self.stream.clients

    @property
    def steps(self) -> int | None:
        """The number of steps of the wrapped stream."""
        return self.stream.steps

    @property
    def targets(self) -> Any:
        """() -> all targets, if they are available."""
        return self.stream.targets

    @property
    def largest_class(self) -> int | None:
        """The largest class of a sample, where it is known although `targets` is not."""
        return self.stream.largest_class

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """The label of each class in the data, if it is not the number of the class."""
        return self.stream.labels

    @property
    def names(self) -> tuple[str, ...] | None:
        """The name of each client, if the data names them."""
        return self.stream.names

    @property
    def exam(self) -> Any:
        """seed -> the held-out samples, if there are any."""
        return self.stream.exam

    @property
    def minimiser(self) -> Any:
        """The minimiser of the aggregate risk, if it is known."""
        return self.stream.minimiser

    def chunk(self, seed: int, first: int, last: int) -> Any:
        return self.stream.chunk(seed, first, last)

    def drawn(self, seed: int) -> Drawn | None:
        return self.stream.drawn(seed)


class Changed(Sampler):
    """A sampler that changes the samples of another sampler."""

    of: Sampler

    @property
    def minimiser(self) -> Any:
        """The minimiser of the aggregate risk, if it is known."""
        return self.of.minimiser

    @property
    def batch(self) -> int | None:
        """The number of samples in a batch without a `count`."""
        return self.of.batch


@value
class parted(Changed):
    """The samples of another sampler, with their features in two groups.

    >>> from mainstem.streams.arrays import indexed
    >>> from mainstem.streams.deal import in_time
    >>> rows = indexed(np.eye(3), np.zeros(3), in_time().to(np.zeros(3), None, clients=3))
    >>> parts = parted(rows, np.array([0]), np.array([[1, 2]]), np.array([[True, False]]), False)
    >>> [x.tolist() for x in parts.sample((), At(1, 1, None), None).shown]
    [[0.0], [1.0, 0.0]]
    """

    of: Sampler = leaf()
    common: Any = leaf()  # global columns
    places: Any = leaf()  # [1 or clients, most], local columns
    real: Any = leaf()  # [1 or clients, most], False: padding
    ragged: bool = static()  # each client has its own columns

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        whole = self.of.sample(piece, at, drawn)
        k = at.k if self.ragged else 0
        places, real = jnp.asarray(self.places)[k], jnp.asarray(self.real)[k]
        own = jnp.where(real, whole.shown[places], 0)
        return whole._replace(shown=(whole.shown[self.common], own))


@value
class split(Wrapped):
    """`stream` with its features as (global, local), for `problems.personal`.

    `shared` lists the global columns, `own` the local ones: one list for all clients, or one list per
    client (of any length; shorter lists are padded with zeros). A column in both groups, or in
    neither, is an error; ``overlap=True`` allows the former.

    >>> import numpy as np
    >>> from mainstem.streams import arrays
    >>> rows = arrays(np.ones((6, 3)), np.zeros(6), clients=2)
    >>> split(rows, shared=[0], own=[[1], [1, 2]]).clients
    2
    """

    stream: Stream = part(Stream, EXAMPLE)
    shared: Any = static()
    own: Any = static()
    overlap: bool = flag(default=False)

    def admit(self) -> None:
        width, own = _width(self.stream), self.own
        shared = _columns("shared", self.shared, width)
        lists = (Sequence, np.ndarray)
        ragged = (
            isinstance(own, lists) and len(own) and all(isinstance(each, lists) for each in own)
        )
        if ragged and len(own) != self.clients:
            wanted = f"have a list for each of {self.clients} clients"
            raise check.refuse("split", "own", wanted, own)
        groups = [_columns("own", each, width) for each in (own if ragged else [own])]
        for k, each in enumerate(groups):
            both = sorted({*shared} & {*each})
            if both and not self.overlap:
                whose = f" (client {k})" if ragged else ""
                wanted = f"share no column with shared{whose}, or say overlap=True"
                raise check.refuse("split", "own", wanted, both)
        left = sorted({*range(width)} - {*shared}.union(*groups))
        if left:
            raise check.refuse("split", "own", f"leave out none of {width} columns", left)
        object.__setattr__(self, "shared", shared)
        object.__setattr__(self, "own", tuple(groups) if ragged else groups[0])

    @property
    def ragged(self) -> bool:
        """Whether each client has its own columns."""
        return isinstance(self.own[0], tuple)

    @property
    def device(self) -> Sampler:
        groups = self.own if self.ragged else (self.own,)
        most = max(len(each) for each in groups)
        places, real = np.zeros((len(groups), most), np.int32), np.zeros((len(groups), most), bool)
        for k, each in enumerate(groups):
            places[k, : len(each)], real[k, : len(each)] = each, True
        common = np.array(self.shared, np.int32)
        return parted(self.stream.device, common, places, real, self.ragged)

    def rows(self) -> Sample | None:
        known = self.stream.rows()
        if known is None or self.ragged:
            return None
        features = np.asarray(known.shown)
        return known._replace(shown=(features[:, self.shared], features[:, self.own]))

    def places(self, seed: int, first: int, last: int) -> np.ndarray | None:
        return self.stream.places(seed, first, last)


def _width(stream: Stream) -> int:
    """The number of features of a sample."""
    known = stream.rows()
    shown = (first_shapes(stream) if known is None else known).shown
    if not hasattr(shown, "ndim") or shown.ndim != 2:
        raise BadData("split: wants samples with one vector of features")
    return int(shown.shape[1])


def _columns(name: str, given: Any, width: int) -> tuple[int, ...]:
    wanted = f"list different columns from 0 to {width - 1}"
    try:
        columns = np.asarray(given)
    except ValueError:
        raise check.refuse("split", name, wanted, given) from None
    fine = columns.ndim == 1 and columns.size and np.issubdtype(columns.dtype, np.integer)
    if not fine or columns.min() < 0 or columns.max() >= width:
        raise check.refuse("split", name, wanted, given)
    if len(np.unique(columns)) != columns.size:
        raise check.refuse("split", name, wanted, given)
    return tuple(columns.tolist())


@value
class present(Changed):
    """The samples of another sampler, each present independently with probability `rate`.

    >>> from mainstem.streams.generated import alternating
    >>> at = At(1, 0, random.root(0))
    >>> present(alternating(clients=3), 1.0).sample((), at, None).count.tolist()
    1
    """

    of: Sampler = leaf()
    rate: Any = leaf()  # one, or one per client

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        whole = self.of.sample(piece, at, drawn)
        chance = of_client(constant(self.rate).astype(jnp.float32), at.k)
        luck = random.uniform(random.fold(at.key, 1), dtype=jnp.float32)
        here = (luck < chance).astype(jnp.int32)
        count = (self.of.batch or 1) if whole.count is None else whole.count
        return whole._replace(count=here * count)


@value
class sometimes(Wrapped):
    """`stream` in which each client gets a sample only with probability `rate` (one, or one per client).

    At a step without a sample a client's loss is zero, it learns nothing and its metrics do not count
    (Agarwal et al. 2020, Section 2); `weights` = T / N_i of `simulate` compensate for this.

    >>> from mainstem.streams import alternating
    >>> sometimes(alternating(clients=3), rate=[1.0, 0.5, 0.1]).clients
    3
    """

    stream: Stream = part(Stream, EXAMPLE)
    rate: Any = rates()

    def admit(self) -> None:
        if np.ndim(self.rate) and np.size(self.rate) != self.clients:
            wanted = f"have one entry for each of {self.clients} clients"
            raise check.refuse("sometimes", "rate", wanted, self.rate.tolist())

    @property
    def device(self) -> Sampler:
        return present(self.stream.device, self.rate)
