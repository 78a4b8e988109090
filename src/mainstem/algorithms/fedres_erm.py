"""FedRes.ERM: each side re-solves over all its samples (Agarwal, Langford and Wei 2020)."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
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
    simultaneous: bool = mx.flag(
        default=False
    )  # a client re-solves against the shared model that predicted
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
        if self.radius is None:
            return mx.parts.everything()
        return jax.tree.map(
            lambda _: self.radius, mx.parts.l2_ball(1)
        )  # unchecked: it may be traced

    @property
    def _recall(self) -> Recall:
        if self.radius is None:
            return Sums()
        like = Sums(1) if self.keep is None else Samples(1, self.keep)
        return jax.tree.map(lambda _: self.radius, like)  # unchecked, as above

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


@mx.preset(Resolve)
def fedres_erm(
    radius: float | None = None, keep: int | None = None, simultaneous: bool = False
) -> Resolve:
    r"""The best model on all samples so far, against the other side's newest (Algorithms 1 and 2).

    .. math:: w_{i,t} = \arg\min_{|w| \le D} \sum_{s<t} \ell_{i,s}(w^g_{t-\beta}, w), \qquad
              w^g_{t+1} = \arg\min_{|w| \le D} \sum_i \sum_{s \le t-\alpha} \ell_{i,s}(w, w_{i,t-\alpha})

    A client sends its sample (global and local features, label) and the own model that predicted.
    Squared losses are solved in closed form from sums that do not grow. For other losses give
    `keep`, how many samples of each client there will be: they are kept, so that memory grows with
    them, and each minimum is certified inside the ball of `radius`. `simultaneous` is Algorithm 6
    of Appendix C, where a client re-solves against the global model that predicted.

    >>> import mainstem as ms
    >>> world = ms.streams.residuals(clients=4, shared=3, own=2)
    >>> run = ms.simulate(ms.fedres_erm(radius=5), ms.problems.personal(3, 2), world, steps=60)
    >>> bool(run.loss[-20:].mean() < 0.1 * run.loss[:5].mean())
    True
    """
    return Resolve(radius, keep, simultaneous)


@mx.preset(Resolve)
def fictitious_play(radius: float | None = None, keep: int | None = None) -> Resolve:
    r"""Each side is best against what the other side *was* at each sample (eqs. (5) and (6)).

    .. math:: w_{i,t+1} = \arg\min_w \sum_{s \le t} \ell_{i,s}(w^g_{s-\beta}, w), \qquad
              w^g_{t+1} = \arg\min_w \sum_i \sum_{s \le t-\alpha} \ell_{i,s}(w, w_{i,s})

    A client sends (global features, local prediction, label), as in FedRes.SGD. The two sides tend
    to lock each other, and convergence can be very slow: Appendix C shows it. `radius` and `keep`
    are those of `fedres_erm`.

    >>> import mainstem as ms
    >>> world = ms.streams.residuals(clients=4, shared=3, own=2)
    >>> run = ms.simulate(ms.fictitious_play(), ms.problems.personal(3, 2), world, steps=50)
    >>> bool(run.loss[-10:].mean() < run.loss[:5].mean())
    True
    """
    return Resolve(radius, keep, fictitious=True)
