"""FedRes.ERM: each side re-solves over all its samples (Agarwal, Langford and Wei 2020)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from mainstem import check
from mainstem.algorithms.fedres_sgd import known_to
from mainstem.base import (
    Algorithm,
    At,
    Collected,
    Gradient,
    Pair,
    Params,
    Problem,
    Residual,
    Sample,
    Setting,
    joined,
)
from mainstem.parts.codec import plain
from mainstem.parts.collect import each
from mainstem.parts.domain import everything, l2_ball
from mainstem.parts.participation import everyone
from mainstem.parts.recall import Loss, Recall, samples, sums
from mainstem.parts.sync import every
from mainstem.spec import recorded


class Client(NamedTuple):
    """What a client needs for its next step."""

    received: Params  # w^g, the last broadcast
    own: Params  # w_i
    memory: Any  # of all its samples
    told: Params  # what it will say of the last one
    news: Any  # whether there is one


class Server(NamedTuple):
    """What the server needs for its next step."""

    params: Params  # w^g
    memory: Any  # of all samples that have arrived
    own: Any  # [clients, own] the newest own model of each client, where it is sent
    newest: Any  # [clients] the step of that


class Telling(NamedTuple):
    """What is remembered and sent of a sample, and what it then costs either side."""

    mine: Callable[[Residual, Pair, Any], Params]  # what the client keeps of it
    theirs: Callable[[Residual, Pair, Any], Params]  # what the server is sent
    client: Callable[[Residual], Loss]
    server: Callable[[Residual], Loss]
    sends_model: bool  # whether the own model goes with it


@recorded
def fedres_erm(
    radius: float | None = None, keep: int | None = None, simultaneous: bool = False
) -> Algorithm:
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
    told = Telling(
        mine=_sample, theirs=_sample, client=_own_loss, server=_shared_loss, sends_model=True
    )
    return solving("fedres_erm", told, radius, keep, simultaneous)


def solving(
    owner: str, told: Telling, radius: float | None, keep: int | None, simultaneous: bool
) -> Algorithm:
    """Both sides re-solve over what they remember."""
    if radius is not None:
        check.positive(owner, "radius", radius)
    if keep is not None and radius is None:
        raise check.refuse(owner, "radius", "be given where samples are kept", radius)
    domain = everything() if radius is None else l2_ball(radius)
    recall = _recall(owner, radius, keep)

    def start(params: Pair, setting: Setting) -> tuple[Server, Callable[[Any], Client]]:
        known = known_to(owner, setting.gradient)
        shared, own = domain.project(params.shared), domain.project(params.own)
        dtype, said = shared.dtype, _lengths(known, told)
        sees = (shared.size, own.size) if told.sends_model else (0, 0)
        mine = recall.empty(own.size, sees[0], said[0], 1, dtype)
        theirs = recall.empty(shared.size, sees[1], said[1], setting.clients, dtype)
        first = Client(shared, own, mine, jnp.zeros(said[1], dtype), jnp.zeros((), bool))
        owns = jnp.broadcast_to(own[: sees[1]], (setting.clients, sees[1]))
        newest = jnp.zeros(setting.clients, jnp.int32)
        return Server(shared, theirs, owns, newest), lambda k: first

    def model(client: Client) -> Pair:
        return Pair(client.received, client.own)

    def learn(client: Client, gradient: Gradient, seen: Any, at: At) -> Client:
        known, pair = known_to(owner, gradient), model(client)
        new = told.mine(known, pair, seen)[None]
        memory = recall.add(
            told.client(known), client.memory, new, jnp.zeros(1, jnp.int32), jnp.ones(1, bool)
        )
        said = told.theirs(known, pair, seen)
        return client._replace(memory=memory, told=said, news=jnp.ones((), bool))

    def upload(client: Client, at: At) -> tuple[Client, Params, Any]:
        body = jnp.concatenate([client.told, client.own]) if told.sends_model else client.told
        silent = client._replace(news=jnp.zeros((), bool))
        return silent, body, client.news.astype(client.own.dtype)

    def merge(server: Server, got: Collected, gradient: Gradient, t: Any) -> Any:
        assert got.each is not None
        known, here, heard = known_to(owner, gradient), got.each, got.each.weights > 0
        length = _lengths(known, told)[1]
        memory = recall.add(
            told.server(known), server.memory, here.bodies[:, :length], here.client, heard
        )
        newest = server.newest.at[here.client].max(jnp.where(heard, here.sent, 0))
        fresh = heard & (here.sent == newest[here.client])
        place = jnp.where(fresh, here.client, got.clients)
        own = server.own.at[place].set(here.bodies[:, length:], mode="drop")
        best = recall.best(told.server(known), memory, own, server.params)
        params = jnp.where(got.count > 0, best, server.params)
        return Server(params, memory, own, newest), params

    def download(client: Client, params: Params, gradient: Gradient, merged: Any) -> Client:
        partner = client.received if simultaneous else params
        partners = partner[None] if told.sends_model else partner[None, :0]
        known = known_to(owner, gradient)
        own = recall.best(told.client(known), client.memory, partners, client.own)
        return client._replace(received=params, own=own)

    def fits(problem: Problem, samples: Sample, steps: int) -> None:
        known_to(owner, problem)
        if problem.form is None and keep is None:
            raise check.refuse(owner, "keep", f"be {steps}: the losses are not quadratic", keep)
        if keep is not None and keep < steps:
            raise check.refuse(owner, "keep", f"be at least {steps}, the steps of the run", keep)

    return Algorithm(
        start,
        model,
        learn,
        upload,
        merge,
        download,
        sync=every(1),
        participation=everyone(),
        codec=plain(),
        collect=each(),
        domain=domain,
        personal=True,
        check=fits,
    )


def _recall(owner: str, radius: float | None, keep: int | None) -> Recall:
    if keep is None or radius is None:
        return sums(radius)
    return samples(radius, check.integer(owner, "keep", keep, least=1))


def _sample(known: Residual, pair: Pair, seen: Any) -> Params:
    """(global features, local features, label)."""
    x, local, label = known.read(seen)
    return joined(jnp.concatenate([x, local]), label)


def _joint(known: Residual, shared: Params, own: Params, told: Any) -> Any:
    """The loss of both models on a sample that was told whole."""
    width = known.widths[0]
    score = known.shared(shared, told[:width]) + known.own(own, told[width:-1])
    return known.penalty(score, told[-1])


def _own_loss(known: Residual) -> Loss:
    return lambda mine, partner, told: _joint(known, partner, mine, told)


def _shared_loss(known: Residual) -> Loss:
    return lambda mine, partner, told: _joint(known, mine, partner, told)


def _lengths(known: Residual, told: Telling) -> tuple[int, int]:
    """How many numbers a client keeps of a sample, and how many it sends."""
    if told.sends_model:
        return (sum(known.widths) + 1,) * 2
    return known.widths[1] + 2, known.widths[0] + 2
