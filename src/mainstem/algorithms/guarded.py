"""Guarded: the server bounds what one client can do to the model of all."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mainstem import extend as mx
from mainstem.algorithms.inspecting import Inspecting

SHARES = 0.95, 0.5  # the quantiles that are followed: the first is the usual size of changes
FAR = 100.0  # limits from which on sizes are remembered as the same: a client that is mended returns soon
PACE = 0.5  # how fast the quantiles follow: up by 61 % if exceeded, else down by 2.5 %


class Memory(NamedTuple):
    """The usual sizes of the clients' changes, and how often each client was stopped."""

    usual: Any  # [2, clients], the 95 % quantile and the median; 0: nothing known yet
    stopped: Any  # [clients, 2], messages that were shortened, and that were left out


class Server(NamedTuple):
    """The server of the algorithm, and the memory of the guard."""

    state: Any
    memory: Memory


@mx.value
class guarded(Inspecting):
    r"""The algorithm `of`, with messages of unusual size shortened or left out by the server.

    The size of a message is the length of the change that it asks for: of a gradient its norm, of a model
    its distance from the broadcast with which its sender started. The server follows the 95 % quantile and
    the median of each client's sizes. A client's limit is `factor` times the median, over the *other*
    clients, of their 95 % quantiles. A larger change is shortened to the limit; if the median of a client's
    own sizes is more than `hold` times the limit, its messages are left out, until that is no longer so.
    A client that sends several gradients or models for one merge counts once, with their mean; the mean is
    over the clients that are not left out.

    Of three clients or more, the first message is left out until another client's size is known. Where the
    sizes of one other client alone are known, changes are shortened but never left out, for nobody can tell
    which of the two is faulty.

    >>> import mainstem as ms
    >>> algorithm = ms.guarded(ms.fedogd(step=0.5))
    >>> problem, stream = ms.problems.softmax(features=64, classes=10), ms.streams.digits(clients=20)
    >>> run = ms.simulate(algorithm, problem, stream, steps=100)
    >>> algorithm
    guarded(of=fedogd(step=0.5))
    """

    of: mx.Algorithm = mx.part(mx.Algorithm, "fedogd(step=0.1)")
    factor: float = mx.positive(default=2.0)
    hold: float = mx.positive(default=3.0)

    guards = True

    def start(self, params: Any, setting: mx.Setting) -> tuple[Server, Callable[[Any], Any]]:
        state, client_of = self.of.start(params, setting)
        dtype = jax.tree.leaves(params)[0].dtype
        unknown = jnp.zeros((2, setting.clients), dtype)
        never = jnp.zeros((setting.clients, 2), jnp.int32)
        return Server(state, Memory(unknown, never)), client_of

    def merge(
        self, server: Server, got: mx.Collected, gradient: mx.Gradient, t: Any
    ) -> tuple[Server, mx.Params]:
        assert got.each is not None
        memory, kept = self._kept(server.memory, got.each, got.clients)
        state, params = self.merge_changed(server.state, kept, got.clients, gradient, t)
        return Server(state, memory), params

    def _kept(self, memory: Memory, got: mx.Arrivals, clients: int) -> tuple[Memory, mx.Arrivals]:
        """The messages as they are merged, and the memory with their sizes."""
        start = self.origin(got)
        change = got.bodies - start
        divisor, length = _sizes(change)
        spoken = got.weights > 0
        here = spoken & jnp.isfinite(length)
        size = jnp.where(here, jnp.minimum(divisor * length, _large(length.dtype)), 0)
        usual = _followed(memory.usual, size, got.client)
        limits, others = self._limits(usual[0])
        usual = jnp.minimum(usual, jnp.where(others > 0, FAR * limits, jnp.inf))
        outside = (others != 1) & (usual[1] > self.hold * limits)
        limit, left_out = limits[got.client], outside[got.client]
        long = size > limit
        shortened = start + (limit / divisor / length)[:, None] * change
        bodies = jnp.where(long[:, None], shortened, got.bodies)
        taken = here & ~left_out
        events = jnp.stack([spoken, taken & long, spoken & ~taken], axis=1)
        counts = jnp.zeros((clients, 3), jnp.int32).at[got.client].add(events)
        kept = got._replace(
            bodies=jnp.where(here[:, None], bodies, start),
            weights=self._weights(got.weights, counts[got.client, 0], taken),
        )
        return Memory(usual, memory.stopped + counts[:, 1:]), kept

    def _limits(self, high: Any) -> tuple[Any, Any]:
        """For each client, the largest change that is taken as it is, and of how many others the size is known."""
        clients, known = len(high), high > 0
        others = jnp.sum(known) - known
        ascending = jnp.sort(high)  # those of which nothing is known come first
        middle = clients - jnp.sum(known) + others // 2  # the upper median, with one's own left out
        index = jnp.where(known & (high <= ascending[middle]), middle + 1, middle)
        median = ascending[jnp.clip(index, 0, clients - 1)]
        alone = jnp.inf if clients < 3 else 0.0
        return jnp.where(others > 0, self.factor * median, alone), others

    def _weights(self, weights: Any, messages: Any, taken: Any) -> Any:
        """The weights of the messages that are `taken`, given how many `messages` each one's sender has sent.

        If the mean of the clients is what counts, the messages of a client share one weight, and the clients that
        are kept have the weight of all.
        """
        if self.of.sends not in (mx.GRADIENTS, mx.MODELS):
            return jnp.where(taken, weights, 0)
        votes = weights / jnp.maximum(messages, 1).astype(weights.dtype)
        left = jnp.where(taken, votes, 0)
        share = jnp.sum(left) / jnp.sum(votes)
        return left / jnp.where(share > 0, share, 1)


def _followed(usual: Any, sizes: Any, client: Any) -> Any:
    """The quantiles, moved by the largest new size of each client; a size of 0 does not count."""
    size = jnp.zeros_like(usual[0]).at[client].max(sizes)
    share = jnp.asarray(SHARES, usual.dtype)[:, None]
    moved = usual * jnp.exp(PACE * jnp.where(size > usual, share, share - 1))
    nearer = jnp.where(size > usual, jnp.minimum(moved, size), jnp.maximum(moved, size))
    return jnp.where(size > 0, jnp.where(usual > 0, nearer, size), usual)


def _sizes(change: Any) -> tuple[Any, Any]:
    """A divisor for each row, and the length of the row divided by it: no square overflows."""
    largest = jnp.max(jnp.abs(change), axis=1)
    divisor = jnp.where(largest > 0, jnp.minimum(largest, _large(change.dtype)), 1)
    return divisor, jnp.sqrt(jnp.sum((change / divisor[:, None]) ** 2, axis=1))


def _large(dtype: Any) -> float:
    """Larger sizes count as this one: its multiples and its inverse can be represented."""
    return float(jnp.finfo(dtype).max) ** 0.75
