"""FollowResiduals: a shared and an own model step along the gradient of one loss.

The general form of FedRes.SGD (Agarwal et al. 2020).
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mainstem import extend as mx
from mainstem.parts import late
from mainstem.parts.message import Gradients, Message, Samples, residual_of

SAMPLE, GRADIENT = "sample", "gradient"
ALIGNED, ON_ARRIVAL, UNDELAYED = "aligned", "on_arrival", "undelayed"


class Client(NamedTuple):
    """What a client needs for its next step."""

    received: mx.Params  # w^g, the last broadcast
    own: mx.Params  # w_i
    summary: Any  # of this period, sent at the next sync
    slope: mx.Params  # the own gradient of this period
    count: Any  # the number of samples of this period
    late: late.Late  # own gradients that wait for a broadcast with their message
    step: Any  # the state of its step-size rule


class Server(NamedTuple):
    """What the server needs for its next step."""

    params: mx.Params  # w^g
    step: Any


@mx.value
class FollowResiduals(mx.Algorithm):
    """Server and clients each step along their own gradient of one loss; see `fedres_sgd`.

    Without an `own_step` the clients' own models are zero and are not sent: see `central`.

    >>> FollowResiduals(step=0.1, own_step=0.2)
    fedres_sgd(step=0.1, own_step=0.2)
    """

    step: mx.Step = mx.step_size()
    own_step: mx.Step | None = mx.leaf(default=None, checked=mx.as_step)
    domain: mx.Domain = mx.part(mx.Domain, "box(-1, 1)", default=mx.parts.everything())
    period: int = mx.integer(default=1, least=1)
    message: str = mx.one_of(GRADIENT, SAMPLE, default=SAMPLE)
    variant: str = mx.one_of(ALIGNED, ON_ARRIVAL, UNDELAYED, default=ALIGNED)
    participation: mx.Participation = mx.any_participation()
    codec: mx.Codec = mx.any_codec()
    collect: mx.Collect = mx.leaf(default=None)  # that of the message, if left out
    downlink: mx.Codec | None = mx.any_downlink()

    sends = mx.SUMS
    personal = True

    def admit(self) -> None:
        owner, mirror = type(self).__name__, mx.parts.euclidean(self.domain)
        for name, chosen in (("step", self.step), ("own_step", self.own_step)):
            if chosen is not None and chosen.coordinatewise and not mirror.separable:
                wanted = f"have one rate for all coordinates on the {self.domain.title}"
                raise mx.check.refuse(owner, name, wanted, chosen)
        if self.variant == ON_ARRIVAL and self.message == GRADIENT:
            wanted = "be sample: the server takes the gradient"
            raise mx.check.refuse(owner, "message", wanted, self.message)
        if not self.participation.everyone:
            wanted = "be everyone(): an own gradient waits for its own message"
            raise mx.check.refuse(owner, "participation", wanted, self.participation)
        if self.message == SAMPLE and not self.codec.linear:
            raise mx.check.refuse(owner, "codec", "be plain() where samples are sent", self.codec)
        if self.collect is None:
            mx.set_field(self, "collect", self._content.collect)
        mx.check.instance(owner, "collect", self.collect, mx.Collect, "total()")
        if self.collect.based != self._content.collect.based:
            wanted = f"be left out, or a sum, where the message is the {self.message}"
            raise mx.check.refuse(owner, "collect", wanted, self.collect)

    @property
    def sync(self) -> mx.Sync:
        return mx.parts.every(self.period)

    @property
    def family(self) -> str | None:
        """The theorems of Agarwal et al., which assume that the clients learn too."""
        return None if self.own_step is None else "fedres"

    @property
    def traits(self) -> mx.Traits:
        return mx.Traits(carries=("own", "step"))

    @property
    def _content(self) -> Message:
        kind = Samples if self.message == SAMPLE else Gradients
        return kind(self.period, own=self.own_step is not None)

    def check(self, problem: mx.Problem, samples: mx.Sample, steps: int) -> None:
        if self.message == SAMPLE:
            residual_of(self.call()[0], problem)

    def start(self, params: mx.Pair, setting: mx.Setting) -> tuple[Server, Callable[[Any], Client]]:
        shared = self.domain.project(params.shared)
        has_own, waits = self.own_step is not None, self.variant == ALIGNED
        own = self.domain.project(params.own) if has_own else jnp.zeros_like(params.own)
        first = Client(
            shared,
            own,
            summary=self._content.initial(setting.gradient, shared),
            slope=jnp.zeros_like(own),
            count=jnp.int32(0),
            late=late.nothing(setting.pending if waits else 0, own),
            step=self.own_step.init(own) if self.own_step is not None else (),
        )
        return Server(shared, self.step.init(shared)), lambda k: first

    def model(self, client: Client) -> mx.Pair:
        return mx.Pair(client.received, client.own)

    def learn(self, client: Client, gradient: mx.Gradient, seen: Any, at: mx.At) -> Client:
        pair = self.model(client)
        slope = gradient(pair, seen)
        return client._replace(
            summary=self._content.add(client.summary, gradient, pair, slope, seen, at.t),
            slope=client.slope + slope.own / self.period,
            count=client.count + 1,
        )

    def upload(self, client: Client, at: mx.At) -> tuple[Client, mx.Params, Any]:
        has_samples = client.count > 0
        if self.variant == ALIGNED:
            after = client._replace(late=late.put(client.late, client.slope, at.t, has_samples))
        else:
            after = self._stepped(client, client.slope, has_samples, at.t)
        after = after._replace(
            summary=self._content.cleared(client.summary),
            slope=jnp.zeros_like(client.slope),
            count=jnp.zeros_like(client.count),
        )
        return after, jnp.ravel(client.summary), has_samples.astype(client.own.dtype)

    def merge(
        self, server: Server, got: mx.Collected, gradient: mx.Gradient, t: Any
    ) -> tuple[Server, mx.Params]:
        here = server.params if self.variant == ON_ARRIVAL else None
        slope = self._content.slope(got, gradient, here)
        eta, state = self.step.rate(server.step, slope, t)
        params = mx.parts.euclidean(self.domain).step(server.params, slope, eta)
        server = got.unless_empty(Server(params, state), server)
        return server, server.params

    def download(
        self, client: Client, params: mx.Params, gradient: mx.Gradient, merged: Any, t: Any
    ) -> Client:
        client = client._replace(received=params)
        if self.variant != ALIGNED:
            return client
        step = functools.partial(self._stepped, t=t)
        rest, client = late.taken(client.late, merged, client, step)
        return client._replace(late=rest)

    def _stepped(self, client: Client, slope: mx.Params, whether: Any, t: Any) -> Client:
        """The client after a step of its own model by one of its gradients, if `whether`; t gives the rate."""
        if self.own_step is None:
            return client
        eta, state = self.own_step.rate(client.step, slope, t)
        own = jnp.where(
            whether, mx.parts.euclidean(self.domain).step(client.own, slope, eta), client.own
        )
        kept = jax.tree.map(lambda x, y: jnp.where(whether, x, y), state, client.step)
        return client._replace(own=own, step=kept)
