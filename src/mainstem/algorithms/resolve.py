"""Resolve: server and clients minimise the loss over their stored samples.

The general form of FedRes.ERM (Agarwal, Langford and Wei 2020).
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from mainstem import extend as mx
from mainstem.parts.history import History, Loss, Samples, Shapes, Squares
from mainstem.parts.message import residual_of
from mainstem.parts.sample_summary import Predicted, SampleSummary, Whole


class Client(NamedTuple):
    """What a client needs for its next step."""

    received: mx.Params  # w^g, the last broadcast
    own: mx.Params  # w_i
    predicted: mx.Params  # the own model that predicted the last sample
    memory: Any  # of all its samples
    summary: mx.Params  # of the last sample, sent at the next sync
    fresh: Any  # whether that sample is new since the last upload


class Server(NamedTuple):
    """What the server needs for its next step."""

    params: mx.Params  # w^g
    memory: Any  # of all samples that have arrived
    own: Any  # [clients, own] the newest own model of each client, if it is sent
    newest: Any  # [clients] the step at which that was sent


@mx.value
class Resolve(mx.Algorithm):
    """Server and clients take the best model on all their stored samples; see `fedres_erm` and `fictitious_play`.

    >>> Resolve(radius=5.0)
    fedres_erm(radius=5.0)
    """

    radius: float | None = mx.positive(default=None)
    capacity: int | None = mx.integer(default=None, least=1)
    simultaneous: bool = mx.flag(default=False)  # given the shared model that predicted
    fictitious: bool = mx.flag(default=False)  # given the other side's prediction at each sample

    sync = mx.parts.every(1)
    participation = mx.parts.everyone()
    codec = mx.parts.plain()
    collect = mx.parts.each()
    personal = True

    def admit(self) -> None:
        if self.capacity is not None and self.radius is None:
            raise mx.check.refuse(
                type(self).__name__, "radius", "be given where samples are stored", self.radius
            )

    @property
    def domain(self) -> mx.Domain:
        return mx.parts.everything() if self.radius is None else mx.parts.l2_ball(self.radius)

    @property
    def _history(self) -> History:
        if self.radius is None or self.capacity is None:
            return Squares(self.radius)
        return Samples(self.radius, self.capacity)

    @property
    def _samples(self) -> SampleSummary:
        return Predicted() if self.fictitious else Whole()

    def _residual(self, gradient: mx.Gradient) -> mx.Residual:
        return residual_of(type(self).__name__, gradient)

    def check(self, problem: mx.Problem, samples: mx.Sample, steps: int) -> None:
        owner = self.call()[0]
        residual_of(owner, problem)
        if problem.form is None and self.capacity is None:
            raise mx.check.refuse(
                owner, "capacity", f"be {steps}: the losses are not quadratic", None
            )
        if self.capacity is not None and self.capacity < steps:
            wanted = f"be at least {steps}, the steps of the run"
            raise mx.check.refuse(owner, "capacity", wanted, self.capacity)

    def start(self, params: mx.Pair, setting: mx.Setting) -> tuple[Server, Callable[[Any], Client]]:
        samples, history, clients = self._samples, self._history, setting.clients
        lengths = samples.lengths(self._residual(setting.gradient))
        shared, own = self.domain.project(params.shared), self.domain.project(params.own)
        sees = (shared.size, own.size) if samples.sends_model else (0, 0)
        mine = history.empty(Shapes(own.size, sees[0], lengths[0]), 1, own.dtype)
        theirs = history.empty(Shapes(shared.size, sees[1], lengths[1]), clients, own.dtype)
        first = Client(
            shared, own, own, mine, jnp.zeros(lengths[1], own.dtype), jnp.zeros((), bool)
        )
        owns = jnp.broadcast_to(own[: sees[1]], (clients, sees[1]))
        return Server(shared, theirs, owns, jnp.zeros(clients, jnp.int32)), lambda k: first

    def model(self, client: Client) -> mx.Pair:
        return mx.Pair(client.received, client.own)

    def learn(self, client: Client, gradient: mx.Gradient, seen: Any, at: mx.At) -> Client:
        known, pair = self._residual(gradient), self.model(client)
        new = self._samples.stored(known, pair, seen)[None]
        here = jnp.zeros(1, jnp.int32), jnp.ones(1, bool)
        memory = self._history.add(self._own_loss(gradient), client.memory, new, *here)
        summary = self._samples.sent(known, pair, seen)
        after = Client(client.received, pair.own, pair.own, memory, summary, jnp.ones((), bool))
        return after._replace(own=self._solved(after, client.received, gradient))

    def upload(self, client: Client, at: mx.At) -> tuple[Client, mx.Params, Any]:
        body = client.summary
        if self._samples.sends_model:
            body = jnp.concatenate([body, client.predicted])
        after = client._replace(fresh=jnp.zeros((), bool))
        return after, body, client.fresh.astype(client.own.dtype)

    def merge(
        self, server: Server, got: mx.Collected, gradient: mx.Gradient, t: Any
    ) -> tuple[Server, mx.Params]:
        assert got.each is not None
        known, here, heard = self._residual(gradient), got.each, got.each.weights > 0
        loss = Loss(functools.partial(self._samples.shared_score, known), known.penalty)
        length = self._samples.lengths(known)[1]
        summary, models = here.bodies[:, :length], here.bodies[:, length:]
        memory = self._history.add(loss, server.memory, summary, here.client, heard)
        newest = server.newest.at[here.client].max(jnp.where(heard, here.sent, 0))
        fresh = heard & (here.sent == newest[here.client])
        place = jnp.where(fresh, here.client, got.clients)
        own = server.own.at[place].set(models, mode="drop")
        best = self._history.best(loss, memory, own, server.params)
        params = got.unless_empty(best, server.params)
        return Server(params, memory, own, newest), params

    def download(
        self, client: Client, params: mx.Params, gradient: mx.Gradient, merged: Any, t: Any
    ) -> Client:
        partner = client.received if self.simultaneous else params
        return client._replace(received=params, own=self._solved(client, partner, gradient))

    def _solved(self, client: Client, partner: mx.Params, gradient: mx.Gradient) -> mx.Params:
        """The best own model given a shared one; of several, the nearest to the one that predicted last."""
        partners = partner[None] if self._samples.sends_model else partner[None, :0]
        loss = self._own_loss(gradient)
        return self._history.best(loss, client.memory, partners, client.predicted)

    def _own_loss(self, gradient: mx.Gradient) -> Loss:
        known = self._residual(gradient)
        return Loss(functools.partial(self._samples.own_score, known), known.penalty)
