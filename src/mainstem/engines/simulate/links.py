"""Links: messages with delays, delivered at sync steps only.

A message sent at step s is merged at the first sync at or after s + up; a broadcast made at step u is
downloaded at the first sync at or after u + down, the newest only, each at most once.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.base import Arrivals
from mainstem.parts.network import network


def depth(syncs: np.ndarray, delays: np.ndarray) -> int:
    """The most syncs that can occur while a message is in transit, its own included."""
    if syncs.size == 0:
        return 1
    served = np.searchsorted(syncs, syncs + delays.max(initial=0))
    return int(np.max(served - np.arange(syncs.size))) + 1


def round_trip(syncs: np.ndarray, wires: network) -> int:
    """The most messages of one client that can be in transit, up and back, at once."""
    if syncs.size == 0:
        return 1
    sent = np.arange(syncs.size)
    longest = 1
    for up, down in {*zip(wires.up.tolist(), wires.down.tolist(), strict=True)}:
        merged = np.searchsorted(syncs, syncs + up)
        heard = merged < syncs.size
        back = np.searchsorted(syncs, syncs[merged[heard]] + down)
        longest = max(longest, int(np.max(back - sent[heard], initial=0)) + 1)
    return longest


class Links(NamedTuple):
    """All messages in transit, and what each client and the server have received."""

    bodies: jax.Array  # [up slots, clients, size of a body]
    weights: jax.Array  # [up slots, clients]; 0: empty or merged
    sent: jax.Array  # [up slots, clients], the step at which it was sent
    broadcasts: jax.Array  # [down slots, D]
    made: jax.Array  # [down slots], the step at which it was made; 0: none
    contains: jax.Array  # [down slots, clients], each client's newest step in that broadcast
    merged: jax.Array  # [clients], each client's newest merged step
    got: jax.Array  # [clients], the step of the newest broadcast downloaded
    held: jax.Array | None  # [clients, D], that broadcast, where the server needs it
    bases: jax.Array | None  # [up slots, clients, D], the broadcast that its sender held
    syncs: jax.Array  # the number of syncs so far


def empty(
    up_slots: int, down_slots: int, clients: int, body: Any, broadcast: jax.Array, based: bool
) -> Links:
    """Empty links for bodies like `body` and broadcasts like `broadcast`, which every client holds."""
    integers = jnp.zeros(clients, jnp.int32)
    held = jnp.broadcast_to(broadcast, (clients, broadcast.size))
    return Links(
        bodies=jnp.zeros((up_slots, clients, body.size), body.dtype),
        weights=jnp.zeros((up_slots, clients), broadcast.dtype),
        sent=jnp.zeros((up_slots, clients), jnp.int32),
        broadcasts=jnp.zeros((down_slots, broadcast.size), broadcast.dtype),
        made=jnp.zeros(down_slots, jnp.int32),
        contains=jnp.zeros((down_slots, clients), jnp.int32),
        merged=integers,
        got=integers,
        held=held if based else None,
        bases=jnp.zeros((up_slots, *held.shape), broadcast.dtype) if based else None,
        syncs=jnp.zeros((), jnp.int32),
    )


def post(links: Links, bodies: jax.Array, weights: jax.Array, t: Any) -> Links:
    """Hands the clients' messages of step t to their uplinks."""
    slot = links.syncs % links.weights.shape[0]
    if links.bases is not None:
        links = links._replace(bases=links.bases.at[slot].set(links.held))
    return links._replace(
        bodies=links.bodies.at[slot].set(bodies),
        weights=links.weights.at[slot].set(weights),
        sent=links.sent.at[slot].set(t),
    )


def arrived(links: Links, wires: network, t: Any, period: int | None) -> tuple[Links, Arrivals]:
    """The links without the messages that arrived by step t, and places of which those that arrived are filled.

    Where syncs come every `period` steps, at most one message of each client can arrive at a time.
    """
    here = (links.weights > 0) & (links.sent + wires.up <= t)
    weights = jnp.where(here, links.weights, 0)
    newest = jnp.max(jnp.where(here, links.sent, 0), axis=0)
    left = links._replace(
        weights=jnp.where(here, 0, links.weights), merged=jnp.maximum(links.merged, newest)
    )
    client = jnp.broadcast_to(jnp.arange(here.shape[1], dtype=jnp.int32), here.shape)
    places = Arrivals(links.bodies, weights, client, links.sent, links.bases)
    if period is None:
        return left, jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), places)
    slot = (links.syncs - -(-wires.up // period)) % here.shape[0]
    return left, jax.tree.map(lambda x: x[slot, jnp.arange(here.shape[1])], places)


def announce(links: Links, broadcast: jax.Array, t: Any) -> Links:
    """Hands the broadcast of step t to the downlinks."""
    slot = links.syncs % links.made.shape[0]
    return links._replace(
        broadcasts=links.broadcasts.at[slot].set(broadcast),
        made=links.made.at[slot].set(t),
        contains=links.contains.at[slot].set(links.merged),
        syncs=links.syncs + 1,
    )


class Delivery(NamedTuple):
    """For each client: whether there is a new broadcast, its params, the client's newest step merged in it, and
    the step at which it was made."""

    fresh: jax.Array
    params: jax.Array
    merged: jax.Array
    made: jax.Array


def deliver(links: Links, wires: network, t: Any) -> tuple[Links, Delivery]:
    """Delivers the broadcasts that arrived by step t, the newest only and each at most once."""
    here = (links.made[:, None] > 0) & (links.made[:, None] + wires.down <= t)
    made = jnp.where(here, links.made[:, None], 0)
    slot = jnp.argmax(made, axis=0)
    newest = jnp.max(made, axis=0)
    fresh = newest > links.got
    merged = jnp.take_along_axis(links.contains, slot[None], axis=0)[0]
    delivery = Delivery(fresh, links.broadcasts[slot], merged, newest)
    if links.held is not None:
        held = jnp.where(fresh[:, None], delivery.params, links.held)
        links = links._replace(held=held)
    return links._replace(got=jnp.maximum(links.got, newest)), delivery
