"""Terms of Rizk et al. 2020, eq. (28), measured on a stream: noise, disagreement, drift."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check, random, replay
from mainstem.base import SEVERAL, At, Batch, Flat, Problem, Stream, cast


class Tracking(NamedTuple):
    r"""The terms that limit the accuracy of dynamic FedAvg, and the step that balances them.

    For a small step :math:`\mu` the error obeys :math:`e_i = (I - \mu H) e_{i-1} + \mu s_i - q_i`. Its mean
    square converges to :math:`\frac{\mu}{2} \mathrm{tr}(H^{-1} R) + \frac{1}{2\mu} \mathrm{tr}(H^{-1} Q)`.
    """

    noise: float  # sigma_s^2, eq. (25)
    disagreement: float  # epsilon^2, eq. (26), with tau_eps instead of the printed tau_eps^2
    drift: float  # the mean squared change of the minimiser in a step
    rising: float  # tr(H^-1 R) / 2, the factor of mu
    falling: float  # tr(H^-1 Q) / 2, the factor of 1 / mu

    @property
    def best_step(self) -> float:
        """The step at which the two terms are equal; 0 without drift."""
        return float(np.sqrt(self.falling / self.rising))

    def floor(self, step: float) -> float:
        """The mean-square deviation to which a small step converges."""
        return self.rising * step + self.falling / step


def tracking(
    problem: Problem,
    stream: Stream,
    *,
    participants: int,
    epochs: Any = 1,
    batch: Any = None,
    first: int = 2,
    steps: int = 1000,
    points: int = 20,
    seeds: int = 10,
) -> Tracking:
    """Measures the terms at the minimiser, at `points` steps from `first` to `steps`, for `seeds` seeds.

    `participants` is L, the clients sampled at a sync, `epochs` is E_k and `batch` B_k, as in `dynamic_fedavg`.
    The stream must know its minimiser, as `streams.walking` does, and its samples must be batches.
    """
    check.instance("tracking", "problem", problem, Problem, "batched(logistic(2))")
    if stream.minimiser is None:
        raise check.refuse("tracking", "stream", "know its minimiser, as walking does", stream)
    participants = check.integer(
        "tracking", "participants", participants, least=1, most=stream.clients
    )
    first = check.integer("tracking", "first", first, least=2)
    steps = check.integer("tracking", "steps", steps, least=first)
    with jax.enable_x64(True):
        terms = _terms(problem, stream)
        times = np.unique(np.linspace(first, steps, points).astype(int))
        found = [terms(seed, int(t)) for seed in range(seeds) for t in times]
    curve, spreads, slopes, moved, held = (np.stack(part) for part in zip(*found, strict=True))
    clients = stream.clients
    held_by = held[0]
    within = within_factor("tracking", held_by, held_by if batch is None else batch, epochs)
    within, between = np.broadcast_to(within, clients), between_factor(clients, participants)
    spread, hessian = spreads.mean(axis=0), curve.mean(axis=0)
    # the squared mean over a batch overestimates |grad P_k|^2 by its own variance
    apart = np.mean(np.einsum("nki,nkj->nkij", slopes, slopes), axis=0)
    apart -= spread / held_by[:, None, None]
    shaken = spread * (within + 1 / held_by)[:, None, None] + between * apart
    inverse = np.linalg.inv(hessian)
    drift = np.mean(np.einsum("ni,nj->nij", moved, moved), axis=0)
    trace = np.trace
    return Tracking(
        noise=3 / participants * float(np.mean(within * np.trace(spread, axis1=1, axis2=2))),
        disagreement=2 / participants * between * float(np.mean(np.trace(apart, axis1=1, axis2=2))),
        drift=float(trace(drift)),
        rising=float(trace(inverse @ shaken.mean(axis=0)) / participants / 2),
        falling=float(trace(inverse @ drift) / 2),
    )


def _terms(problem: Problem, stream: Stream) -> Any:
    """(seed, t) -> Hessian, each client's gradient covariance and mean, the minimiser's change, and N_k."""
    vectors, ks = Flat(cast(problem, "float64")), jnp.arange(stream.clients)

    def made(sampler: Any, key: Any, drawn: Any, pieces: Any, ahead: Any, t: Any) -> Any:
        at = replay.at_all(key, random.STREAM, t, ks)
        samples = sampler.samples(pieces, at, drawn)
        before = sampler.minimiser(drawn, jax.tree.map(lambda x: x[0], pieces), t)
        best = sampler.minimiser(drawn, jax.tree.map(lambda x: x[0], ahead), t + 1)

        def agent(sample: Any, at: At) -> Any:
            seen = vectors.one(best, sample, at)[0]
            real, count = seen.weights > 0, jnp.sum(seen.weights > 0)

            def slope(item: Any) -> Any:
                single = Batch(jax.tree.map(lambda x: x[None], item), jnp.ones(1))
                return vectors.gradient(best, single)

            each = jax.vmap(slope)(seen.items)
            mean = jnp.where(real[:, None], each, 0).sum(axis=0) / count
            off = jnp.where(real[:, None], each - mean, 0)
            hessian = jax.hessian(lambda params: vectors.loss(params, seen))(best)
            return hessian, off.T @ off / jnp.maximum(count - 1, 1), mean, count

        hessians, spread, mean, count = jax.vmap(agent, in_axes=(0, SEVERAL))(samples, at)
        return hessians.mean(axis=0), spread, mean, best - before, count

    compiled = jax.jit(made)

    def terms(seed: int, t: int) -> Any:
        sampler, drawn, pieces = replay.given(stream, seed, t, t + 1, "float64")
        now, ahead = (jax.tree.map(lambda x, n=n: np.asarray(x)[n], pieces) for n in (0, 1))
        key = jnp.asarray(random.root(seed))
        return jax.device_get(compiled(sampler, key, drawn, now, ahead, jnp.int32(t)))

    return terms


def within_factor(owner: str, held: Any, batch: Any, epochs: Any) -> np.ndarray:
    """tau_s of eq. (27): the factor of the samples' variance if B_k of N_k are drawn in E_k epochs."""
    held, batch, epochs = (
        check.counts(owner, name, value)
        for name, value in (("held", held), ("batch", batch), ("epochs", epochs))
    )
    if np.any(batch > held):
        raise check.refuse(owner, "batch", "be at most what is held", batch.tolist())
    return np.asarray((held - batch) / (np.maximum(held - 1, 1) * batch * epochs))


def between_factor(clients: int, participants: int) -> float:
    """tau_eps of eq. (27): the factor of the clients' variance if L of K are drawn."""
    return (clients - participants) / max(clients - 1, 1)
