"""A look at the first steps of a stream, and the constants that are found there."""

import math
from typing import NamedTuple

from mainstem import check
from mainstem.base import Domain, Problem, Stream
from mainstem.measure import constants
from mainstem.measure.prefix import Prefix

SAMPLES = 4000  # about so many are looked at
SHORTEST, LONGEST = 20, 500  # steps


class Pilot(NamedTuple):
    """What the first steps of a stream tell. Gradients are those at the best model of these steps."""

    steps: int  # looked at
    clients: int
    parameters: int
    mean_smoothness: float  # of the mean loss
    sample_smoothness: float  # of single losses
    distance: float | None  # |w_1 - w*|; None for networks, where no best is known
    variance: float  # sigma_diff^2: the mean squared gradient of single samples
    noise: float  # the part of it that is chance, at each client
    spatial: float  # the part of it by which clients differ
    crowd: float  # the mean squared norm of the mean over clients
    at_stake: float  # the mean loss of the first model less that of the best


def pilot_prefix(
    problem: Problem, stream: Stream, horizon: int, *, seed: int = 0, domain: Domain | None = None
) -> Prefix:
    """The first steps of `stream`: enough to measure on, at most `horizon` of them."""
    check.integer("look", "horizon", horizon, least=1)
    steps = min(LONGEST, max(SHORTEST, math.ceil(SAMPLES / stream.clients)), horizon)
    steps = steps if stream.steps is None else min(steps, stream.steps)
    return Prefix(problem, stream, steps, seed=seed, domain=domain)


def look(
    problem: Problem, stream: Stream, horizon: int, *, seed: int = 0, domain: Domain | None = None
) -> Pilot:
    """Measure the first steps of `stream`, at most `horizon` of them."""
    prefix = pilot_prefix(problem, stream, horizon, seed=seed, domain=domain)
    steps = prefix.steps
    place = prefix.best.params if problem.convex else prefix.start
    squares = constants.row_gradients(prefix, place) ** 2
    variance = float(prefix.rows[1] @ squares)
    noise, spatial, crowd = variance, 0.0, variance / stream.clients
    if steps >= 4:
        around, apart, together = constants.spread(prefix, place)
        noise, spatial, crowd = (max(0.0, float(each)) for each in (around, apart, together))
    staying = float(prefix.rows[1] @ constants.row_losses(prefix, prefix.start))
    return Pilot(
        steps,
        stream.clients,
        problem.size,
        float(constants.mean_smoothness(prefix)),
        float(constants.sample_smoothness(prefix)),
        float(constants.distance(prefix)) if problem.convex else None,
        variance,
        noise,
        spatial,
        crowd,
        max(0.0, staying - float(prefix.best.values[-1]) / steps) if problem.convex else math.inf,
    )
