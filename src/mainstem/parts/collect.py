"""Collect: what the server gets to see of the bodies that arrived."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check
from mainstem.base import Arrivals, Collect, Collected
from mainstem.spec import recorded

Kept = Callable[[jax.Array, jax.Array], jax.Array]  # (ranks, how many arrived) -> which are used


@recorded
def total() -> Collect:
    """The weighted sum of the bodies."""

    def gather(got: Arrivals, clients: int) -> Collected:
        # the unheard may hold anything, even NaN
        spoken = jnp.where(got.weights[:, None] > 0, got.bodies, 0)
        total = jnp.matmul(got.weights, spoken, precision="highest")  # on a GPU too
        return Collected(total, jnp.sum(got.weights), jnp.sum(got.weights > 0), clients)

    return Collect(gather, additive=True)


@recorded
def each() -> Collect:
    """Every body with its sender, the step it was sent and the broadcast its sender held then."""

    def gather(got: Arrivals, clients: int) -> Collected:
        nothing = jnp.zeros(0, got.bodies.dtype)
        return Collected(nothing, jnp.sum(got.weights), jnp.sum(got.weights > 0), clients, got)

    return Collect(gather, additive=False, based=True)


@recorded
def median() -> Collect:
    """The coordinate-wise median of the bodies, in the place of their mean."""

    def kept(rank: jax.Array, count: jax.Array) -> jax.Array:
        return (rank == (count - 1) // 2) | (rank == count // 2)

    return Collect(functools.partial(_ranked, kept), additive=False)


@recorded
def trimmed_mean(share: float) -> Collect:
    """The mean without the lowest and the highest `share` of the bodies, for each coordinate."""
    if not 0 <= check.number("trimmed_mean", "share", share) < 0.5:
        raise check.refuse("trimmed_mean", "share", "lie in [0, 0.5)", share)

    def cuts(most: int) -> np.ndarray:
        """How many go at either end, by count: the same in every dtype."""
        cut: np.ndarray = np.floor(share * np.arange(most + 1) + 1e-9).astype(np.int32)
        return cut

    def kept(rank: jax.Array, count: jax.Array) -> jax.Array:
        cut = jnp.asarray(cuts(len(rank)))[count]
        return (rank >= cut) & (rank < count - cut)

    return Collect(functools.partial(_ranked, kept), additive=False)


@recorded
def clipped(norm: float, of: Collect | None = None) -> Collect:
    """`of` (the weighted total, if left out) of bodies that are shortened to length `norm` at most."""
    norm = check.positive("clipped", "norm", norm)
    of = check.instance("clipped", "of", of or total(), Collect, "median()")

    def gather(got: Arrivals, clients: int) -> Collected:
        lengths = jnp.linalg.norm(jnp.where(got.weights[:, None] > 0, got.bodies, 0), axis=1)
        shares = jnp.minimum(1, norm / jnp.maximum(lengths, norm))
        return of.gather(got._replace(bodies=shares[:, None] * got.bodies), clients)

    return Collect(gather, additive=False, based=of.based)


def _ranked(kept: Kept, got: Arrivals, clients: int) -> Collected:
    """The mean of the bodies whose rank is kept, for each coordinate, as if it were the mean of all."""
    bodies, weights = got.bodies, got.weights
    arrived = weights > 0
    count = jnp.sum(arrived)
    ordered = jnp.sort(jnp.where(arrived[:, None], bodies, jnp.inf), axis=0)
    use = kept(jnp.arange(len(bodies)), count) & (jnp.arange(len(bodies)) < count)
    center = jnp.sum(jnp.where(use[:, None], ordered, 0), axis=0) / jnp.maximum(jnp.sum(use), 1)
    weight = jnp.sum(weights)
    return Collected(center * weight, weight, count, clients)
