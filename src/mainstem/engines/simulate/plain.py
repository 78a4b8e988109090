"""The plain path: every step of every client, exactly as the design writes it down.

It runs any algorithm on any network with any sync, and it is what the fast path is tested against.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mainstem import random
from mainstem.engines.simulate import links
from mainstem.engines.simulate.links import Links
from mainstem.engines.simulate.stage import Row, Stage, arrive, everyone, face, occasion, written
from mainstem.parts.network import Network


class State(NamedTuple):
    """All that the next step needs."""

    server: Any
    clients: Any  # the clients' states, their axis first
    links: Links


class Detail(NamedTuple):
    """What each client did, for the debugger."""

    losses: jax.Array
    clients: Any


def begin(stage: Stage, slots: tuple[int, int], key: Any) -> State:
    """The state before step 1; `slots` are how many messages a link can hold, up and down."""
    params = stage.problem.init(random.fold(key, random.INIT))
    server, client_of = stage.algorithm.start(params, stage.clients)
    clients = jax.vmap(client_of)(everyone(stage))
    return State(server, clients, links.empty(*slots, stage.clients, params))


def step(
    stage: Stage,
    wires: Network,
    state: State,
    key: Any,
    resident: Any,
    pieces: Any,
    t: Any,
    sync: Any,
) -> tuple[State, Row, Detail]:
    """Step t: decide, learn, and if `sync` exchange."""
    algorithm, ks = stage.algorithm, everyone(stage)
    models = jax.vmap(algorithm.model)(state.clients)
    samples = arrive(stage, key, resident, pieces, t, ks)
    seen, losses, metrics = face(stage, models, samples, key, t, ks, shared=False)
    row = written(stage, models, seen, losses, metrics, key, t)
    state = state._replace(clients=learnt(stage, state.clients, seen, key, t, ks))
    state, heard, received = jax.lax.cond(
        sync,
        lambda state: exchange(stage, wires, state, key, t),
        lambda state: (state, jnp.int32(0), jnp.int32(0)),
        state,
    )
    row = {**row, "heard": heard, "received": received}
    return state, row, Detail(losses, state.clients)


def learnt(stage: Stage, clients: Any, seen: Any, key: Any, t: Any, k: Any) -> Any:
    """The clients after learning from what they have seen."""
    at = occasion(key, random.LEARN, t, k)
    return jax.vmap(
        lambda client, seen, at: stage.algorithm.learn(client, stage.gradient, seen, at)
    )(clients, seen, at)


def uploaded(stage: Stage, clients: Any, heard: Any, key: Any, t: Any, k: Any) -> Any:
    """The clients after uploading, the bodies as the server will read them, and their weights."""
    algorithm = stage.algorithm
    clients, bodies, weights = jax.vmap(algorithm.upload)(
        clients, occasion(key, random.UPLOAD, t, k)
    )
    keys = occasion(key, random.CODEC, t, k).key
    size = bodies.shape[-1]
    coded = jax.vmap(
        lambda body, key: algorithm.codec.decode(algorithm.codec.encode(body, key), size)
    )
    return clients, coded(bodies, keys), jnp.where(heard, weights, 0).astype(bodies.dtype)


def exchange(
    stage: Stage, wires: Network, state: State, key: Any, t: Any
) -> tuple[State, Any, Any]:
    """One sync: (state, how many were heard, how many got a broadcast)."""
    algorithm, ks = stage.algorithm, everyone(stage)
    heard = algorithm.participation.heard(key, t, stage.clients)
    clients, bodies, weights = uploaded(stage, state.clients, heard, key, t, ks)
    spoke = jnp.sum(weights > 0, dtype=jnp.int32)
    line = links.post(state.links, bodies, weights, t)
    line, bodies, weights = links.arrived(line, wires, t)
    collected = algorithm.collect.gather(bodies, weights, stage.clients)
    server, broadcast = algorithm.merge(state.server, collected, stage.gradient, t)
    line, delivery = links.deliver(links.announce(line, broadcast, t), wires, t)

    def downloaded(client: Any, fresh: Any, params: Any, merged: Any) -> Any:
        after = algorithm.download(client, params, merged)
        return jax.tree.map(lambda new, old: jnp.where(fresh, new, old), after, client)

    clients = jax.vmap(downloaded)(clients, *delivery)
    return State(server, clients, line), spoke, jnp.sum(delivery.fresh, dtype=jnp.int32)


def advance(
    stage: Stage,
    wires: Network,
    state: State,
    key: Any,
    resident: Any,
    pieces: Any,
    first: Any,
    sync: Any,
) -> tuple[State, Row]:
    """The steps from `first` on, as many as `sync` has entries."""

    def body(state: State, given: Any) -> tuple[State, Row]:
        offset, flag, piece = given
        state, row, _ = step(stage, wires, state, key, resident, piece, first + offset, flag)
        return state, row

    return jax.lax.scan(body, state, (jnp.arange(len(sync), dtype=jnp.int32), sync, pieces))
