r"""FedSEA's world (Sahu et al. 2026): an adversary picks distributions, and the stream knows them.

The targets are :math:`c_{t,m} = c + drift_t + offset_m`. Three knobs set the constants of the
paper's bounds: `noise` is sigma^2 (8), `spatial` is zeta^2 (4), `temporal` the mean of K_t^2 (5)
against the best fixed point of many steps. Expected losses are quadratic forms, so expected and
virtual regret are in closed form.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check, random
from mainstem.base import Form, Stream, constant
from mainstem.random import Key
from mainstem.spec import recorded
from mainstem.streams.generated import generated

DRIFTS = ("alternating", "random", "slow")


@recorded
def sea_quadratic(
    clients: int,
    dimension: int = 5,
    noise: float = 1.0,
    spatial: float = 0.0,
    temporal: float = 0.0,
    drift: str = "alternating",
    distance: float = 1.0,
    curvature: float = 1.0,
    seed: int = 0,
) -> Stream:
    """Targets for `problems.quadratic(dimension, curvature)`: normal around a moving centre.

    `distance` is that of the mean centre from the origin; `drift` is alternating (+, -, +, ...),
    random (a fresh normal draw each step) or slow (a sine of period 1,000).
    """
    owner = "sea_quadratic"
    curvature = check.positive(owner, "curvature", curvature)
    dimension = check.integer(owner, "dimension", dimension, least=1)
    spatial = check.at_least(owner, "spatial", spatial, 0)
    noise = check.at_least(owner, "noise", noise, 0)
    spread = math.sqrt(noise / dimension) / curvature
    step_out = math.sqrt(2 * check.at_least(owner, "temporal", temporal, 0) / curvature)
    target = _targets(
        owner, clients, dimension, spatial / curvature**2, step_out, drift, distance, seed
    )

    def sample(key: Key, t: Any, k: Any) -> tuple[tuple[()], jax.Array]:
        return (), target(t, k) + spread * random.normal(key, (dimension,))

    def expected(t: Any, k: Any) -> Form:
        c = target(t, k)
        constant = 0.5 * curvature * (c @ c + dimension * spread**2)
        return Form(jnp.asarray(curvature), curvature * c, constant)

    return generated(sample, clients, expected=expected)


@recorded
def sea_ridge(
    clients: int,
    dimension: int = 5,
    noise: float = 1.0,
    spatial: float = 0.0,
    temporal: float = 0.0,
    drift: str = "alternating",
    distance: float = 1.0,
    ridge: float = 0.1,
    seed: int = 0,
) -> Stream:
    """Regression for `problems.linear(dimension, ridge, intercept=False)`: x ~ N(0, I), y = <c, x> + e.

    Here `noise` is the variance of the label's error e (the variance of the gradient grows with the
    distance from c, so no single sigma^2 exists); `spatial` and `temporal` are as in the paper.
    """
    owner = "sea_ridge"
    ridge = check.at_least(owner, "ridge", ridge, 0)
    spread = math.sqrt(check.at_least(owner, "noise", noise, 0))
    step_out = math.sqrt(2 * check.at_least(owner, "temporal", temporal, 0) * (1 + ridge))
    target = _targets(owner, clients, dimension, spatial, step_out, drift, distance, seed)

    def sample(key: Key, t: Any, k: Any) -> tuple[jax.Array, jax.Array]:
        draws = random.normal(key, (dimension + 1,))
        x = draws[:dimension]
        return x, x @ target(t, k) + spread * draws[dimension]

    def expected(t: Any, k: Any) -> Form:
        c = target(t, k)
        return Form((1 + ridge) * jnp.eye(dimension), c, 0.5 * (c @ c + spread**2))

    return generated(sample, clients, expected=expected)


def _targets(
    owner: str,
    clients: int,
    dimension: int,
    spatial: float,
    step_out: float,
    drift: str,
    distance: float,
    seed: int,
) -> Callable[[Any, Any], jax.Array]:
    """(t, k) -> c + drift_t + offset_k; offsets have mean 0 and mean squared norm `spatial`."""
    clients = check.integer(owner, "clients", clients, least=1)
    dimension = check.integer(owner, "dimension", dimension, least=1)
    check.at_least(owner, "spatial", spatial, 0)
    check.one_of(owner, "drift", drift, DRIFTS)
    seed = check.integer(owner, "seed", seed, least=0)
    if spatial > 0 and clients == 1:
        raise check.refuse(owner, "spatial", "be 0 for a single client", spatial)
    draw = np.random.default_rng(seed)
    direction = np.ones(dimension) / math.sqrt(dimension)
    center = check.at_least(owner, "distance", distance, 0) * direction
    offsets = draw.normal(size=(clients, dimension))
    offsets -= offsets.mean(axis=0)
    if clients > 1:
        offsets *= math.sqrt(spatial / np.mean(np.sum(offsets**2, axis=1)))
    drift_key = random.root(seed)

    def moved(t: Any) -> Any:
        if drift == "alternating":
            return jnp.where(t % 2 == 0, step_out, -step_out) * constant(direction)
        if drift == "slow":
            return math.sqrt(2) * step_out * jnp.sin(2 * math.pi * t / 1000) * constant(direction)
        key = random.fold(drift_key, t)
        return step_out / math.sqrt(dimension) * random.normal(key, (dimension,))

    return lambda t, k: constant(center) + moved(t) + constant(offsets)[k]
