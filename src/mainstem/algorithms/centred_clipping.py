"""Centred clipping: the server merges each client's average message, clipped around what all of them agree on."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mainstem import extend as mx
from mainstem.algorithms.inspecting import Inspecting

ROUNDS = 3  # of clipping in a merge, each around the result of the one before
SEED = 0  # of the permutation of the clients for buckets
OF_GRADIENTS, OF_MODELS = 0.9, 0.5  # the momentum where none is given


class Memory(NamedTuple):
    """What the server remembers of the messages."""

    centre: Any  # [size], the last that was merged
    average: Any  # [clients, size], of each client's messages
    known: Any  # [clients], whether there was any


class Server(NamedTuple):
    """The server of the algorithm, and the memory of its messages."""

    state: Any
    memory: Memory


def _algorithm(owner: str, name: str, given: Any) -> mx.Algorithm:
    algorithm: mx.Algorithm = mx.check.instance(
        owner, name, given, mx.Algorithm, "fedogd(step=0.1)"
    )
    sums = algorithm.sends == mx.SUMS and algorithm.collect.additive
    if algorithm.sends not in (mx.GRADIENTS, mx.MODELS) and not sums:
        raise mx.check.refuse(owner, name, "send gradients, sums of them, or models", algorithm)
    return algorithm


def _share(owner: str, name: str, given: float | None) -> float | None:
    if given is None:
        return None
    if not 0 <= mx.check.number(owner, name, given) < 1:
        raise mx.check.refuse(owner, name, "lie in [0, 1)", given)
    return float(given)


@mx.value
class centred_clipping(Inspecting):
    r"""The algorithm `of`, with a merge that lies of some clients move little (Karimireddy, He and Jaggi, 2021).

    The server follows an average $m_k$ of each client's messages: a gradient, or of a model its distance from the
    broadcast with which its sender started. It starts from the last centre $v$, and moves it three times to
    $v + \frac1n \sum_k (m_k - v) \min(1, \tau / \|m_k - v\|)$, where $\tau$ is the median of the distances. All
    messages of the merge are replaced by the centre. FedRes.SGD can be wrapped if its message is the gradient.

    A lie that is repeated stays near $\tau$, and the averages of honest clients are close together, for their
    noise cancels with a large `momentum`. Where clients are unequal, averages of `bucket` of them, drawn anew for
    each merge, take the place of the clients' own (Karimireddy, He and Jaggi, 2022): then fewer may lie.

    >>> import mainstem as ms
    >>> ms.centred_clipping(ms.fedogd(step=0.5))
    centred_clipping(of=fedogd(step=0.5))
    """

    of: mx.Algorithm = mx.leaf(checked=_algorithm)
    momentum: float | None = mx.leaf(None, checked=_share)
    bucket: int = mx.integer(1, least=1)

    @property
    def _momentum(self) -> Any:
        """That of models is smaller: the change of a model is the sum of several gradients already."""
        if self.momentum is None:
            return OF_MODELS if self.sends_models else OF_GRADIENTS
        return self.momentum

    def start(self, params: Any, setting: mx.Setting) -> tuple[Server, Callable[[Any], Any]]:
        state, client_of = self.of.start(params, setting)
        at = mx.At(jnp.int32(1), jnp.int32(0), jax.random.key(0))
        message = jax.eval_shape(lambda: self.of.upload(client_of(at.k), at)[1])
        nothing = jnp.zeros((setting.clients, *message.shape), message.dtype)
        known = jnp.zeros(setting.clients, bool)
        return Server(state, Memory(nothing[0], nothing, known)), client_of

    def merge(
        self, server: Server, got: mx.Collected, gradient: mx.Gradient, t: Any
    ) -> tuple[Server, mx.Params]:
        assert got.each is not None
        arrived, memory = got.each, server.memory
        start = self.origin(arrived)
        changes, spoken = _means(arrived._replace(bodies=arrived.bodies - start), got.clients)
        followed = self._momentum * memory.average + (1 - self._momentum) * changes
        newest = jnp.where(memory.known[:, None], followed, changes)
        average = jnp.where(spoken[:, None], newest, memory.average)
        rows, present = self._buckets(average, spoken, t)
        centre = memory.centre
        for _ in range(ROUNDS):
            centre = _clipped(centre, rows, present)
        kept = arrived._replace(bodies=jnp.broadcast_to(start + centre, arrived.bodies.shape))
        state, params = self.merge_changed(server.state, kept, got.clients, gradient, t)
        return Server(state, Memory(centre, average, memory.known | spoken)), params

    def _buckets(self, rows: Any, present: Any, t: Any) -> tuple[Any, Any]:
        """The means of random groups of those `present`; the rest of the rows is empty."""
        if self.bucket == 1:
            return rows, present
        clients = len(rows)
        drawn = jax.random.uniform(jax.random.fold_in(jax.random.key(SEED), t), (clients,))
        place = jnp.arange(clients, dtype=jnp.int32)
        order = jnp.argsort(jnp.where(present, drawn, 2.0))
        group = jnp.zeros(clients, jnp.int32).at[order].set(place // self.bucket)
        counts = jax.ops.segment_sum(present.astype(rows.dtype), group, clients)
        sums = jax.ops.segment_sum(jnp.where(present[:, None], rows, 0), group, clients)
        return sums / jnp.maximum(counts, 1)[:, None], counts > 0


def _means(got: mx.Arrivals, clients: int) -> tuple[Any, Any]:
    """The mean message of each client, and whether it sent any."""
    arrived = got.weights > 0
    counts = jax.ops.segment_sum(arrived.astype(got.bodies.dtype), got.client, clients)
    bodies = jnp.where(arrived[:, None], got.bodies, 0)  # empty rows may contain anything
    sums = jax.ops.segment_sum(bodies, got.client, clients)
    return sums / jnp.maximum(counts, 1)[:, None], counts > 0


def _clipped(centre: Any, rows: Any, present: Any) -> Any:
    """The centre, moved by the mean of the distances to the rows, each clipped at the lower median of all."""
    lengths = jnp.linalg.norm(rows - centre, axis=1)
    count = jnp.sum(present)
    ordered = jnp.sort(jnp.where(present, lengths, jnp.inf))
    radius = ordered[jnp.maximum(count - 1, 0) // 2]
    shares = jnp.where(present, jnp.minimum(1, radius / jnp.where(lengths > 0, lengths, 1)), 0)
    return centre + shares @ (rows - centre) / jnp.maximum(count, 1)
