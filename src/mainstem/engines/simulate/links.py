"""Links: messages that take their time, served at sync steps only.

A message sent at s is merged at the first sync at or after s + up; a broadcast made at u is
downloaded at the first sync at or after u + down, the newest only, each at most once.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.parts.network import Network


def depth(syncs: np.ndarray, delays: np.ndarray) -> int:
    """How many syncs can pass while a message is under way, its own included."""
    if syncs.size == 0:
        return 1
    served = np.searchsorted(syncs, syncs + delays.max(initial=0))
    return int(np.max(served - np.arange(syncs.size))) + 1


class Links(NamedTuple):
    """Everything that is under way, and what has come of it."""

    bodies: jax.Array  # [up slots, clients, D]
    weights: jax.Array  # [up slots, clients]; 0: empty or merged
    sent: jax.Array  # [up slots, clients], the step it was sent
    broadcasts: jax.Array  # [down slots, D]
    made: jax.Array  # [down slots], the step it was made; 0: none
    contains: jax.Array  # [down slots, clients], each client's newest step in that broadcast
    merged: jax.Array  # [clients], each client's newest merged step
    got: jax.Array  # [clients], the step of the newest broadcast downloaded
    syncs: jax.Array  # how many there have been


def empty(up_slots: int, down_slots: int, clients: int, like: jax.Array) -> Links:
    """Quiet links for bodies and broadcasts like `like`."""
    integers = jnp.zeros(clients, jnp.int32)
    return Links(
        bodies=jnp.zeros((up_slots, clients, like.size), like.dtype),
        weights=jnp.zeros((up_slots, clients), like.dtype),
        sent=jnp.zeros((up_slots, clients), jnp.int32),
        broadcasts=jnp.zeros((down_slots, like.size), like.dtype),
        made=jnp.zeros(down_slots, jnp.int32),
        contains=jnp.zeros((down_slots, clients), jnp.int32),
        merged=integers,
        got=integers,
        syncs=jnp.zeros((), jnp.int32),
    )


def post(links: Links, bodies: jax.Array, weights: jax.Array, t: Any) -> Links:
    """Hand the clients' messages of step t to their uplinks."""
    slot = links.syncs % links.weights.shape[0]
    return links._replace(
        bodies=links.bodies.at[slot].set(bodies),
        weights=links.weights.at[slot].set(weights),
        sent=links.sent.at[slot].set(t),
    )


def arrived(links: Links, wires: Network, t: Any) -> tuple[Links, jax.Array, jax.Array]:
    """What has come up by step t: (links without it, bodies [n, D], weights [n])."""
    here = (links.weights > 0) & (links.sent + wires.up <= t)
    weights = jnp.where(here, links.weights, 0)
    newest = jnp.max(jnp.where(here, links.sent, 0), axis=0)
    left = links._replace(
        weights=jnp.where(here, 0, links.weights), merged=jnp.maximum(links.merged, newest)
    )
    return left, links.bodies.reshape(-1, links.bodies.shape[-1]), weights.reshape(-1)


def announce(links: Links, broadcast: jax.Array, t: Any) -> Links:
    """Hand the broadcast of step t to the downlinks."""
    slot = links.syncs % links.made.shape[0]
    return links._replace(
        broadcasts=links.broadcasts.at[slot].set(broadcast),
        made=links.made.at[slot].set(t),
        contains=links.contains.at[slot].set(links.merged),
        syncs=links.syncs + 1,
    )


class Delivery(NamedTuple):
    """For each client: is there a new broadcast, which, and its newest step in it."""

    fresh: jax.Array
    params: jax.Array
    merged: jax.Array


def deliver(links: Links, wires: Network, t: Any) -> tuple[Links, Delivery]:
    """What has come down by step t, the newest only and each at most once."""
    here = (links.made[:, None] > 0) & (links.made[:, None] + wires.down <= t)
    made = jnp.where(here, links.made[:, None], 0)
    slot = jnp.argmax(made, axis=0)
    newest = jnp.max(made, axis=0)
    fresh = newest > links.got
    merged = jnp.take_along_axis(links.contains, slot[None], axis=0)[0]
    delivery = Delivery(fresh, links.broadcasts[slot], merged)
    return links._replace(got=jnp.maximum(links.got, newest)), delivery
