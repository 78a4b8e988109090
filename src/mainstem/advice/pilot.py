"""The pilot: measures on the first steps of a stream the constants that `advise` and step="auto" need."""

import math
from typing import NamedTuple

from mainstem import check
from mainstem.base import Domain, Problem, Stream
from mainstem.measure import constants
from mainstem.measure.prefix import Prefix

SAMPLES = 4000  # approximate number of samples that are measured
SHORTEST, LONGEST = 20, 500  # steps


class Pilot(NamedTuple):
    """Constants from the first steps of a stream.

    Gradients are those at the best model of these steps; at the first model if the problem is not convex.
    """

    steps: int  # measured
    clients: int
    parameters: int
    mean_smoothness: float  # of the mean loss
    sample_smoothness: float  # of single losses
    distance: float | None  # |w_1 - w*|; None for networks, whose best model is not known
    variance: float  # sigma_diff^2: the mean squared gradient of single samples
    noise: float  # the part of it within each client: random
    spatial: float  # the part of it between clients
    crowd: float  # the mean squared norm of the mean gradient over clients
    at_stake: float  # mean loss of the first model minus that of the best; inf for networks


def pilot_prefix(
    problem: Problem, stream: Stream, steps: int, *, seed: int = 0, domain: Domain | None = None
) -> Prefix:
    """The first steps of `stream`: enough for the measurement, at most `steps` of them."""
    check.integer("run_pilot", "steps", steps, least=1)
    steps = min(LONGEST, max(SHORTEST, math.ceil(SAMPLES / stream.clients)), steps)
    steps = steps if stream.steps is None else min(steps, stream.steps)
    return Prefix(problem, stream, steps, seed=seed, domain=domain)


def run_pilot(
    problem: Problem, stream: Stream, steps: int, *, seed: int = 0, domain: Domain | None = None
) -> Pilot:
    """Measures the constants on the first steps of `stream`, at most `steps` of them."""
    prefix = pilot_prefix(problem, stream, steps, seed=seed, domain=domain)
    steps = prefix.steps
    place = prefix.best.params if problem.convex else prefix.start
    squares = constants.row_gradients(prefix, place) ** 2
    variance = float(prefix.rows[1] @ squares)
    noise, spatial, crowd = variance, 0.0, variance / stream.clients
    if steps >= 4:
        around, apart, joint = constants.spread(prefix, place)
        noise, spatial, crowd = (max(0.0, float(each)) for each in (around, apart, joint))
    staying = float(prefix.rows[1] @ constants.row_losses(prefix, prefix.start))
    return Pilot(
        steps,
        stream.clients,
        problem.parameters,
        float(constants.mean_smoothness(prefix)),
        float(constants.sample_smoothness(prefix)),
        float(constants.distance(prefix)) if problem.convex else None,
        variance,
        noise,
        spatial,
        crowd,
        max(0.0, staying - float(prefix.best.values[-1]) / steps) if problem.convex else math.inf,
    )
