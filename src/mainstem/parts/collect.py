"""Collect: how the server combines the messages that arrived."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check
from mainstem.base import Arrivals, Collect, Collected
from mainstem.value import flag, part, positive, static, value


@value
class total(Collect):
    """The weighted sum of the messages.

    >>> total().additive
    True
    """

    additive = True

    def gather(self, got: Arrivals, clients: int) -> Collected:
        # rows without a message may contain anything, even NaN
        spoken = jnp.where(got.weights[:, None] > 0, got.bodies, 0)
        total = jnp.matmul(got.weights, spoken, precision="highest")  # full precision on a GPU too
        return Collected(total, jnp.sum(got.weights), jnp.sum(got.weights > 0), clients)


@value
class each(Collect):
    """Every message with its sender, the step at which it was sent and, with `base`, the broadcast that its sender
    had then.

    >>> each().based
    True
    """

    base: bool = flag(default=True)

    @property
    def based(self) -> bool:
        return self.base

    def gather(self, got: Arrivals, clients: int) -> Collected:
        nothing = jnp.zeros(0, got.bodies.dtype)
        return Collected(nothing, jnp.sum(got.weights), jnp.sum(got.weights > 0), clients, got)


@value
class median(Collect):
    """The coordinate-wise median of the clients' messages, in place of their mean.

    A client has one vote: the mean of its messages, if several arrive together.

    >>> median().additive
    False
    """

    def gather(self, got: Arrivals, clients: int) -> Collected:
        votes, rank = _votes(got, clients), jnp.arange(clients)
        count = votes.voters
        return _ranked((rank == (count - 1) // 2) | (rank == count // 2), votes)


def _share(owner: str, name: str, share: float) -> float:
    if not 0 <= check.number(owner, name, share) < 0.5:
        raise check.refuse(owner, name, "lie in [0, 0.5)", share)
    return float(share)


@value
class trimmed_mean(Collect):
    """The mean without the lowest and the highest `share` of the clients' messages, for each coordinate.

    A client has one vote: the mean of its messages, if several arrive together.

    >>> trimmed_mean(0.2)
    trimmed_mean(share=0.2)
    """

    share: float = static(checked=_share)  # static: cuts the same number in every dtype

    def gather(self, got: Arrivals, clients: int) -> Collected:
        votes, rank = _votes(got, clients), jnp.arange(clients)
        cuts = np.floor(self.share * np.arange(clients + 1) + 1e-9).astype(np.int32)
        cut = jnp.asarray(cuts)[votes.voters]
        return _ranked((rank >= cut) & (rank < votes.voters - cut), votes)


@value
class clipped(Collect):
    """Clips each message to the length `norm`, then combines them with `of`.

    >>> clipped(1.0, of=median())
    clipped(norm=1.0, of=median())
    """

    norm: float = positive()
    of: Collect = part(Collect, "median()", default=total())

    @property
    def based(self) -> bool:
        return self.of.based

    def gather(self, got: Arrivals, clients: int) -> Collected:
        lengths = jnp.linalg.norm(jnp.where(got.weights[:, None] > 0, got.bodies, 0), axis=1)
        shares = jnp.minimum(1, self.norm / jnp.maximum(lengths, self.norm))
        return self.of.gather(got._replace(bodies=shares[:, None] * got.bodies), clients)


class _Votes(NamedTuple):
    """The mean message of each client."""

    bodies: jax.Array  # [clients, size]
    spoken: jax.Array  # [clients], whether it sent any
    weight: jax.Array  # of all messages

    @property
    def voters(self) -> jax.Array:
        """The number of clients that sent any."""
        return jnp.sum(self.spoken)


def _votes(got: Arrivals, clients: int) -> _Votes:
    arrived = got.weights > 0
    of_client = jax.ops.segment_sum(got.weights, got.client, clients)
    shares = jnp.where(arrived, got.weights / of_client[got.client], 0)  # 1 of a single message
    bodies = jnp.where(arrived[:, None], got.bodies, 0)  # empty rows may contain anything
    means = jax.ops.segment_sum(shares[:, None] * bodies, got.client, clients)
    return _Votes(means, of_client > 0, jnp.sum(got.weights))


def _ranked(kept: jax.Array, votes: _Votes) -> Collected:
    """For each coordinate, the mean of the votes whose rank is in `kept`, in place of the mean of all."""
    clients = len(votes.bodies)
    ordered = jnp.sort(jnp.where(votes.spoken[:, None], votes.bodies, jnp.inf), axis=0)
    use = kept & (jnp.arange(clients) < votes.voters)
    center = jnp.sum(jnp.where(use[:, None], ordered, 0), axis=0) / jnp.maximum(jnp.sum(use), 1)
    return Collected(center * votes.weight, votes.weight, votes.voters, clients)
