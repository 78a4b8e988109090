"""SendGradients: clients send gradients.

The general form of FedOGD, OFedAvg and OFedIQ (Kwon, Park and Hong 2023).
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

import jax.numpy as jnp

from mainstem import extend as mx


class Client(NamedTuple):
    """What a client needs for its next step."""

    received: mx.Params  # w, the last broadcast: what the client decides with
    local: mx.Params  # theta_k, updated by every sample since then
    unsent: mx.Params  # sum of the gradients since the previous sync step


class Server(NamedTuple):
    """What the server needs for its next step."""

    params: mx.Params  # w
    moments: Any  # the state of its optimizer


class ServerParts(TypedDict, total=False):
    """The parts of the server of `SendGradients`, as keywords."""

    collect: mx.Collect
    downlink: mx.Codec
    server: Any  # an `Optimizer`, or an optax transformation


class MessageParts(ServerParts, total=False):
    """The parts of the server and of the messages, as keywords."""

    sync: mx.Sync
    codec: mx.Codec


class GradientParts(MessageParts, total=False):
    """All parts of `SendGradients`, as keywords."""

    participation: mx.Participation


@mx.value
class SendGradients(mx.Algorithm):
    r"""Clients step locally from the last broadcast, and at a sync send the sum of their gradients.

    Between syncs client k updates a local model that starts at the broadcast w (eqs. (6), (7)),

    .. math:: \theta_k \leftarrow \theta_k - \eta \nabla \ell(\theta_k; z_{k,t}),

    and the sampled clients send the sum :math:`g_k` of these gradients, with the weight :math:`1 / p_k`,
    where :math:`p_k` is the probability to be sampled (eq. (8)). The server steps by their mean (eq. (9)),

    .. math:: w \leftarrow w - \frac{\eta}{K} \sum_{k\ \mathrm{sampled}} Q(g_k) / p_k,

    or, with a `server` optimizer, by the update of optax for :math:`\frac{\eta}{K} \sum Q(g_k) / p_k` in
    place of a gradient (Reddi et al. 2021, Algorithm 2). Decisions are always made with the last
    broadcast. Dividing by :math:`p_k` after the codec Q is the same as before it if
    Q(c x) = c Q(x). No theorem here covers a `server` optimizer.

    >>> import mainstem as ms, optax
    >>> ms.algorithms.SendGradients(step=0.1, sync=ms.parts.every(5), codec=ms.parts.top_k(10))
    fedogd(step=0.1, sync=every(period=5), codec=top_k(count=10))
    >>> fedadam = ms.fedogd(step=1.0, server=optax.adam(0.01))
    """

    step: mx.Step = mx.step_size()
    sync: mx.Sync = mx.any_sync()
    participation: mx.Participation = mx.any_participation()
    codec: mx.Codec = mx.any_codec()
    collect: mx.Collect = mx.any_sum()
    downlink: mx.Codec | None = mx.any_downlink()
    server: mx.Optimizer | None = mx.leaf(default=None, checked=mx.as_optimizer)

    def admit(self) -> None:
        if not self.step.schedule:
            wanted = "depend on t alone (the server takes it too)"
            raise mx.check.refuse(type(self).__name__, "step", wanted, self.step)

    @property
    def sends(self) -> str | None:
        """What the server computes, for advice and `step="auto"`; not known with a server optimizer."""
        return mx.GRADIENTS if self.server is None else None

    @property
    def family(self) -> str | None:
        """The theorems of Kwon et al., which cover no server optimizer."""
        return "ofediq" if self.server is None else None

    @property
    def domain(self) -> mx.Domain:
        return mx.parts.everything()

    @property
    def traits(self) -> mx.Traits:
        return mx.Traits(
            decides_with_broadcast=True,
            forgets_unheard=True,
            sends_gradient_at_broadcast=self.sync.period == 1,
        )

    def start(
        self, params: mx.Params, setting: mx.Setting
    ) -> tuple[Server, Callable[[Any], Client]]:
        first = Client(params, params, jnp.zeros_like(params))
        return Server(params, self.server and self.server.init(params)), lambda k: first

    def model(self, client: Client) -> mx.Params:
        return client.received

    def learn(self, client: Client, gradient: mx.Gradient, seen: Any, at: mx.At) -> Client:
        slope = gradient(client.local, seen)
        eta, _ = self.step.rate((), slope, at.t)
        return Client(client.received, client.local - eta * slope, client.unsent + slope)

    def upload(self, client: Client, at: mx.At) -> tuple[Client, mx.Params, Any]:
        rest = client._replace(unsent=jnp.zeros_like(client.unsent))
        return rest, client.unsent, self.participation.weight(at.k)

    def merge(
        self, server: Server, got: mx.Collected, gradient: mx.Gradient, t: Any
    ) -> tuple[Server, mx.Params]:
        eta, _ = self.step.rate((), server.params, t)
        move = eta / self.participation.scale(got.clients) * got.sum
        if self.server is None:
            params = server.params - move
            return Server(params, None), params
        change, moments = self.server.update(move, server.moments, server.params)
        server = got.unless_empty(Server(server.params + change, moments), server)
        return server, server.params

    def download(
        self, client: Client, params: mx.Params, gradient: mx.Gradient, merged: Any, t: Any
    ) -> Client:
        return Client(received=params, local=params, unsent=client.unsent)
