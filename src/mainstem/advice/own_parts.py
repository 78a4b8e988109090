"""Advice for models with an own part: FedRes, independent clients, or one model without own parts.

It uses the trade-off of Agarwal et al. 2020: with P clients, best models g and w_i, and a gradient noise
of sigma_g^2 and sigma_l^2 in the two parts, a step eta costs a client about

    N / (2 eta P) + eta T (sigma_g^2 + sigma_l^2) / 2,

with N = |g|^2 + sum |w_i|^2 for FedRes and P |g|^2 + sum |w_i|^2 for independent clients: the shared
part counts once or P times. A central model has only g; what it cannot express adds a loss at every step.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import algorithms
from mainstem.advice.pilot import pilot_prefix
from mainstem.base import Algorithm, Flat, Problem, Stream
from mainstem.measure import constants
from mainstem.measure.personal_hindsight import best_models, best_pair
from mainstem.measure.prefix import Prefix
from mainstem.problems.shared_only import shared_only


class Parts(NamedTuple):
    """Constants of the two parts, measured by a pilot."""

    steps: int
    clients: int
    shared_parameters: int
    shared_norm: float  # |g|^2
    own_norm: float  # sum |w_i|^2
    noise: float  # the mean squared gradient of a sample at the best models
    mean_smoothness: float
    sample_smoothness: float
    missing: float  # mean loss of the best model without own parts, minus that of the best pair


class Plan(NamedTuple):
    """An algorithm with its step, its predicted regret and its uploads."""

    algorithm: Algorithm
    regret: float
    messages: float  # uploads per client and step
    why: str


def pilot_of_parts(problem: Problem, stream: Stream, steps: int, *, seed: int = 0) -> Parts:
    """Measures the constants on the first steps of `stream`."""
    prefix = pilot_prefix(problem, stream, steps, seed=seed)
    shared, owns = best_models(prefix.question, prefix.steps)
    least = float(best_pair(prefix.question, [prefix.steps], None).values[-1])
    alone = Prefix(shared_only(problem), stream, prefix.steps, seed=seed)
    return Parts(
        prefix.steps,
        stream.clients,
        len(shared),
        float(shared @ shared),
        float(np.sum(owns**2)),
        _noise(prefix, shared, owns),
        float(constants.mean_smoothness(prefix)),
        float(constants.sample_smoothness(prefix)),
        max(0.0, (float(alone.best.values[-1]) - least) / prefix.steps),
    )


def _noise(prefix: Prefix, shared: np.ndarray, owns: np.ndarray) -> float:
    """The mean squared gradient at each client's best models."""
    vectors = Flat(prefix.problem)

    def of(seen: Any, here: Any, shared: Any, owns: Any) -> Any:
        models = jnp.concatenate([jnp.broadcast_to(shared, (len(owns), len(shared))), owns], axis=1)
        slopes = jax.vmap(vectors.gradient.at)(models, seen)
        return jnp.mean(here * jnp.sum(slopes**2, axis=1))

    return float(np.mean(prefix.by_step(of, shared, owns)))


def plans(parts: Parts, budget: float, steps: int) -> list[Plan]:
    """FedRes and its two baselines within the budget, each with its step."""
    period = math.ceil(1 / budget - 1e-9)
    crowd = 1 / (2 / 3 * parts.clients * parts.mean_smoothness + 2 * parts.sample_smoothness)
    alone = 1 / (2 * parts.sample_smoothness)
    often: dict[str, Any] = {"period": period, "message": "gradient"}
    joint = parts.shared_norm + parts.own_norm
    apart = parts.clients * parts.shared_norm + parts.own_norm
    when = "at every step" if period == 1 else f"every {period} steps"

    def made(make: Callable[[float], Algorithm], norm: float, limit: float, *rest: Any) -> Plan:
        floor, messages, why = rest
        rounds = 1 if messages == 0 else period  # steps per upload of a mean gradient
        error, norm = parts.noise / (2 * rounds), norm * rounds
        free = math.sqrt(norm / (2 * parts.clients * steps * error)) if error else math.inf
        step = float(f"{min(limit, max(free, 1e-12)):.3g}")
        regret = norm / (2 * step * parts.clients) + step * steps * error + steps * floor
        return Plan(make(step), regret, messages, why)

    return [
        made(
            lambda step: algorithms.fedres_sgd(step, **often),
            joint,
            crowd,
            0.0,
            1 / period,
            f"own parts stay, gradients of the shared part go up {when}",
        ),
        made(
            algorithms.independent,
            apart,
            alone,
            0.0,
            0.0,
            "no uploads, each client learns the entire model",
        ),
        made(
            lambda step: algorithms.central(step, **often),
            parts.shared_norm,
            crowd,
            parts.missing,
            1 / period,
            f"no own parts; gradients go up {when}",
        ),
    ]
