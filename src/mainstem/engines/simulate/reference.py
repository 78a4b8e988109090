"""Reference path: computes every step of every client, exactly as the design defines it.

It is the specification of what a simulation computes: it runs any algorithm on any network with any sync,
without optimisations, and the fast path must give the same numbers.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mainstem import random, replay
from mainstem.base import SEVERAL, Faced
from mainstem.engines import run_context
from mainstem.engines.run_context import body, chosen, current_broadcast, first_params, learnt_one
from mainstem.engines.simulate import links
from mainstem.engines.simulate.links import Links
from mainstem.engines.simulate.stage import (
    Feed,
    Row,
    Shape,
    Stage,
    arrive,
    everyone,
    face,
    participants,
    present,
    written,
)


class State(NamedTuple):
    """Everything that the next step needs."""

    server: Any
    clients: Any  # the clients' states, their axis first
    links: Links


class Detail(NamedTuple):
    """Each client's loss and state after a step, for the debugger."""

    losses: jax.Array
    clients: Any


def begin(stage: Stage) -> State:
    """The state before step 1."""
    server, client_of = stage.algorithm.start(first_params(stage, stage.key), stage.setting)
    clients = jax.vmap(client_of)(everyone(stage))
    broadcast = current_broadcast(stage, server)
    based = stage.algorithm.collect.based
    return State(
        server,
        clients,
        links.empty(*stage.slots, len(everyone(stage)), body(stage), broadcast, based),
    )


def step(stage: Stage, state: State, pieces: Any, t: Any, sync: Any) -> tuple[State, Row, Detail]:
    """Step t: decide, learn, and exchange messages if `sync`."""
    algorithm, ks = stage.algorithm, everyone(stage)
    models = jax.vmap(algorithm.model)(state.clients)
    samples = arrive(stage, pieces, t, ks)
    faced = face(stage, models, samples, t, ks, shared=False)
    row = written(stage, models, faced, t, pieces)
    state = state._replace(clients=learnt(stage, state.clients, faced, t, ks))
    state, uploads, downloads = jax.lax.cond(
        sync,
        lambda state: exchange(stage, state, t),
        lambda state: (state, jnp.int32(0), jnp.int32(0)),
        state,
    )
    row = {**row, "uploads": uploads, "downloads": downloads}
    return state, row, Detail(faced.loss, state.clients)


def learnt(stage: Stage, clients: Any, faced: Faced, t: Any, k: Any) -> Any:
    """The clients after learning from their outcomes."""
    at = replay.at_all(stage.key, random.LEARN, t, k)
    over = jax.vmap(functools.partial(learnt_one, stage), in_axes=(0, 0, 0, SEVERAL))
    return over(clients, faced.seen, faced.informative, at)


def uploaded(stage: Stage, clients: Any, heard: Any, t: Any, k: Any) -> Any:
    """The clients after uploading, the bodies as the server decodes them, and their weights."""
    algorithm = stage.algorithm
    at = replay.at_all(stage.key, random.UPLOAD, t, k)
    clients, bodies, weights = jax.vmap(algorithm.upload, in_axes=(0, SEVERAL))(clients, at)
    keys = replay.at_all(stage.key, random.CODEC, t, k).key
    size = bodies.shape[-1]
    coded = jax.vmap(
        lambda body, key: algorithm.codec.decode(algorithm.codec.encode(body, key), size)
    )
    decoded, weights = coded(bodies, keys), jnp.where(heard, weights, 0).astype(bodies.dtype)
    return jax.vmap(algorithm.sent)(clients, bodies, decoded, weights > 0), decoded, weights


def exchange(stage: Stage, state: State, t: Any) -> tuple[State, Any, Any]:
    """One sync: (state, how many clients uploaded, how many received a broadcast)."""
    algorithm, ks, wires = stage.algorithm, everyone(stage), stage.wires
    heard = participants(stage, t)
    clients, bodies, weights = uploaded(stage, state.clients, heard, t, ks)
    uploads = jnp.sum(weights > 0, dtype=jnp.int32)
    line = links.post(state.links, bodies, weights, t)
    line, got = links.arrived(line, wires, t, algorithm.sync.period)
    collected = algorithm.collect.gather(got, stage.clients)
    server, params = algorithm.merge(state.server, collected, stage.gradient, t)
    broadcast = run_context.downloaded(stage, params, stage.key, t)
    line, delivery = links.deliver(links.announce(line, broadcast, t), wires, t)

    def downloaded(client: Any, fresh: Any, *received: Any) -> Any:
        params, merged, made = received
        after = algorithm.download(client, params, stage.gradient, merged, made)
        return chosen(fresh, after, client)

    clients = jax.vmap(downloaded)(clients, *delivery)
    return (
        State(server, clients, line),
        uploads,
        jnp.sum(present(stage, delivery.fresh), dtype=jnp.int32),
    )


def advance(stage: Stage, state: State, feed: Feed, shape: Shape) -> tuple[State, Row]:
    """Runs the steps of a chunk; `feed.flags` has an entry for each."""

    def one(state: State, given: Any) -> tuple[State, Row]:
        offset, flag, piece = given
        state, row, _ = step(stage, state, piece, feed.first + offset, flag)
        return state, row

    offsets = jnp.arange(shape.length, dtype=jnp.int32)
    return jax.lax.scan(one, state, (offsets, feed.flags, feed.pieces))


def models(stage: Stage, state: State) -> tuple[Any, Any]:
    """The server's model and each client's; of a personal problem, the server has no own part."""
    each = jax.vmap(stage.algorithm.model)(state.clients)
    return current_broadcast(stage, state.server), present(
        stage, jax.vmap(stage.problem.join)(each)
    )
