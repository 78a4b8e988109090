"""Each side re-solves over what it remembers: the general form of FedRes.ERM (Agarwal, Langford and Wei 2020)."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from mainstem import extend as mx
from mainstem.parts.message import residual_of
from mainstem.parts.recall import Recall, Samples, Shapes, Sums
from mainstem.parts.telling import Predicted, Telling, Whole


class Client(NamedTuple):
    """What a client needs for its next step."""

    received: mx.Params  # w^g, the last broadcast
    own: mx.Params  # w_i
    memory: Any  # of all its samples
    told: mx.Params  # what it will say of the last one
    news: Any  # whether there is one


class Server(NamedTuple):
    """What the server needs for its next step."""

    params: mx.Params  # w^g
    memory: Any  # of all samples that have arrived
    own: Any  # [clients, own] the newest own model of each client, where it is sent
    newest: Any  # [clients] the step of that


@mx.value
class Resolve(mx.Algorithm):
    """Both sides take the best model on all that they remember; see `fedres_erm` and `fictitious_play`.

    >>> Resolve(radius=5.0)
    fedres_erm(radius=5.0)
    """

    radius: float | None = mx.positive(default=None)
    keep: int | None = mx.integer(default=None, least=1)
    simultaneous: bool = mx.flag(default=False)  # against the shared model that predicted
    fictitious: bool = mx.flag(default=False)  # against what the other side was at each sample

    sync = mx.parts.every(1)
    participation = mx.parts.everyone()
    codec = mx.parts.plain()
    collect = mx.parts.each()
    personal = True

    def admit(self) -> None:
        if self.keep is not None and self.radius is None:
            raise mx.check.refuse(
                "Resolve", "radius", "be given where samples are kept", self.radius
            )

    @property
    def domain(self) -> mx.Domain:
        return mx.parts.everything() if self.radius is None else mx.parts.l2_ball(self.radius)

    @property
    def _recall(self) -> Recall:
        if self.radius is None or self.keep is None:
            return Sums(self.radius)
        return Samples(self.radius, self.keep)

    @property
    def _telling(self) -> Telling:
        return Predicted() if self.fictitious else Whole()

    def check(self, problem: mx.Problem, samples: mx.Sample, steps: int) -> None:
        owner = self.call()[0]
        residual_of(owner, problem)
        if problem.form is None and self.keep is None:
            raise mx.check.refuse(owner, "keep", f"be {steps}: the losses are not quadratic", None)
        if self.keep is not None and self.keep < steps:
            wanted = f"be at least {steps}, the steps of the run"
            raise mx.check.refuse(owner, "keep", wanted, self.keep)

    def start(self, params: mx.Pair, setting: mx.Setting) -> tuple[Server, Callable[[Any], Client]]:
        telling, recall, clients = self._telling, self._recall, setting.clients
        said = telling.lengths(residual_of("fedres_erm", setting.gradient))
        shared, own = self.domain.project(params.shared), self.domain.project(params.own)
        sees = (shared.size, own.size) if telling.sends_model else (0, 0)
        mine = recall.empty(Shapes(own.size, sees[0], said[0]), 1, own.dtype)
        theirs = recall.empty(Shapes(shared.size, sees[1], said[1]), clients, own.dtype)
        first = Client(shared, own, mine, jnp.zeros(said[1], own.dtype), jnp.zeros((), bool))
        owns = jnp.broadcast_to(own[: sees[1]], (clients, sees[1]))
        return Server(shared, theirs, owns, jnp.zeros(clients, jnp.int32)), lambda k: first

    def model(self, client: Client) -> mx.Pair:
        return mx.Pair(client.received, client.own)

    def learn(self, client: Client, gradient: mx.Gradient, seen: Any, at: mx.At) -> Client:
        known, pair = residual_of("fedres_erm", gradient), self.model(client)
        loss = functools.partial(self._telling.own_loss, known)
        new = self._telling.kept(known, pair, seen)[None]
        here = jnp.zeros(1, jnp.int32), jnp.ones(1, bool)
        memory = self._recall.add(loss, client.memory, new, *here)
        said = self._telling.sent(known, pair, seen)
        return client._replace(memory=memory, told=said, news=jnp.ones((), bool))

    def upload(self, client: Client, at: mx.At) -> tuple[Client, mx.Params, Any]:
        sends_model = self._telling.sends_model
        body = jnp.concatenate([client.told, client.own]) if sends_model else client.told
        silent = client._replace(news=jnp.zeros((), bool))
        return silent, body, client.news.astype(client.own.dtype)

    def merge(
        self, server: Server, got: mx.Collected, gradient: mx.Gradient, t: Any
    ) -> tuple[Server, mx.Params]:
        assert got.each is not None
        known, here, heard = residual_of("fedres_erm", gradient), got.each, got.each.weights > 0
        loss = functools.partial(self._telling.shared_loss, known)
        length = self._telling.lengths(known)[1]
        told, models = here.bodies[:, :length], here.bodies[:, length:]
        memory = self._recall.add(loss, server.memory, told, here.client, heard)
        newest = server.newest.at[here.client].max(jnp.where(heard, here.sent, 0))
        fresh = heard & (here.sent == newest[here.client])
        place = jnp.where(fresh, here.client, got.clients)
        own = server.own.at[place].set(models, mode="drop")
        best = self._recall.best(loss, memory, own, server.params)
        params = got.unless_empty(best, server.params)
        return Server(params, memory, own, newest), params

    def download(
        self, client: Client, params: mx.Params, gradient: mx.Gradient, merged: Any
    ) -> Client:
        partner = client.received if self.simultaneous else params
        partners = partner[None] if self._telling.sends_model else partner[None, :0]
        loss = functools.partial(self._telling.own_loss, residual_of("fedres_erm", gradient))
        own = self._recall.best(loss, client.memory, partners, client.own)
        return client._replace(received=params, own=own)
