r"""Automatic step, ``step="auto"``: a constant step from constants measured on the first steps of a stream.

K clients, each sampled with rate p and rounded with variance :math:`\sigma_q^2`, update the model by a
mean gradient plus noise, of variance :math:`c = (1 + \sigma_q^2) / (p K)` in units of single gradients
(c = 1 if a client steps alone). Two conditions limit the step. It must be *stable*,

.. math:: \eta \le 1 / \big(\tfrac23 (1 - c) \bar\beta + 2 c \beta_s\big),

with :math:`\bar\beta` the smoothness of the mean loss and :math:`\beta_s` that of single losses. Without
noise this is three quarters of the limit of gradient descent; with noise alone it is the limit of Kwon et
al.'s Theorem 1, with averaging taken into account. And it should *balance* the start against the noise in

.. math:: \frac{|w_1 - w_*|^2}{2 \eta} + T \Big( \eta v + \frac{\bar\beta}{2} V \Big), \qquad
          V = \min\Big( \frac{\tau - 1}{2} \eta^2, \frac{\eta}{2 \bar\beta} \Big) \sigma^2
          + \min\Big( \frac{(\tau - 1)(2 \tau - 1)}{6} \eta^2, \frac{1}{\bar\beta^2} \Big) \zeta^2,

where v is the mean square of a message's error at the best model, and V the mean squared distance from
their mean of clients that step alone between two syncs: from noise and from their differences, each growing
freely at first and then limited by curvature. The steps of the theorems (`mainstem.theory`) are safe in the
worst case, and much smaller.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize

from mainstem import check
from mainstem.advice.pilot import Pilot, pilot_prefix, run_pilot
from mainstem.base import GRADIENTS, MODELS, SUMS, Algorithm, Mirror, Problem, Step, Stream
from mainstem.errors import MainstemError
from mainstem.measure.constants import row_gradients
from mainstem.measure.geometry import divergence, longest_period
from mainstem.parts import constant
from mainstem.parts.step import automatic_steps
from mainstem.spec import name_of

ALONE = "alone"
NEGLIGIBLE = 2.0**-20  # a codec's squared error below that of float32 over a run


class Way(NamedTuple):
    """How an algorithm turns gradients into updates of the model."""

    kind: str  # what is sent: GRADIENTS at the broadcast, MODELS after local steps, SUMS, or nothing: ALONE
    heard: float  # the expected number of clients in a merge
    rounding: float  # sigma_q^2
    period: int  # tau

    @property
    def noise(self) -> float:
        """c: the variance of an update, in units of single gradients."""
        if self.kind == ALONE or (self.kind == MODELS and self.period > 1):
            return 1.0
        each = (1 + self.rounding) * self.period if self.kind == GRADIENTS else 1.0
        return min(1.0, each / self.heard)


def way_of(algorithm: Algorithm, clients: int, parameters: int, steps: int) -> Way:
    """The `Way` of an algorithm, from what it and its parts declare; an error if that is not enough."""
    if algorithm.sync.silent:
        return Way(ALONE, 1.0, 0.0, 1)
    owner = name_of(algorithm)
    if algorithm.sends is None:
        wanted = "a number: only of an algorithm that declares what it `sends` can it be known"
        raise MainstemError(f'{owner}: step="auto" and advice are not for it: give {wanted}')
    rounding = algorithm.codec.variance(parameters)
    if rounding is None:
        raise MainstemError(
            f'{owner}: step="auto" and advice want a codec that declares its variance, '
            f"{algorithm.codec} does not: give a number"
        )
    exact = algorithm.codec.unbiased or algorithm.corrects_bias or rounding < NEGLIGIBLE
    if not exact:
        raise MainstemError(
            f'{owner}: step="auto" and advice want an unbiased codec, or an algorithm that declares '
            f"`corrects_bias`; {algorithm.codec} is biased: give a number"
        )
    down = algorithm.downlink
    rounded = None if down is None else down.variance(parameters)
    if down is not None and (rounded is None or rounded >= NEGLIGIBLE):
        raise MainstemError(
            f'{owner}: step="auto" and advice want broadcasts that are hardly rounded, '
            f"not those of {down}: give a number"
        )
    heard = algorithm.participation.expected(clients)
    return Way(algorithm.sends, heard, rounding, longest_period(algorithm.sync, steps))


def stable(way: Way, pilot: Pilot, round_trip: int = 1) -> float:
    """The largest stable step."""
    mean, single, noise = pilot.mean_smoothness, pilot.sample_smoothness, way.noise
    if way.kind == SUMS:
        bent = 2 / 3 * way.heard * mean + 2 * single
    else:
        bent = 2 / 3 * (1 - noise) * mean + 2 * noise * single
    if way.kind == GRADIENTS and way.period > 1:
        bent = max(bent, single)  # the local steps in between must be stable too
    return 1 / (max(bent, 1e-12) * round_trip)


def predicted(step: float, way: Way, pilot: Pilot, steps: int) -> float:
    """Predicted regret (mean over clients) after `steps` small steps; at most that of the first model."""
    if pilot.distance is None:
        return math.inf
    tau = way.period
    error = pilot.variance if way.kind == ALONE else pilot.crowd
    if way.kind == GRADIENTS:
        extra = (1 + way.rounding) / way.heard - 1 / pilot.clients
        error = (error + extra * pilot.variance) * tau
    elif way.kind == MODELS:
        error += (1 / way.heard - 1 / pilot.clients) * pilot.variance
    bent = max(pilot.mean_smoothness, 1e-12)
    walk = min(step**2 * (tau - 1) / 2, step / (2 * bent)) if tau > 1 else 0.0
    drift = min(step**2 * (tau - 1) * (2 * tau - 1) / 6, 1 / bent**2)
    apart = walk * pilot.noise + drift * pilot.spatial
    regret = pilot.distance**2 / (2 * step) + steps * (step * error + bent / 2 * apart)
    return min(regret, steps * pilot.at_stake)


def best_step(way: Way, pilot: Pilot, steps: int, round_trip: int = 1) -> float:
    """The stable step at which the predicted regret is smallest."""
    limit = stable(way, pilot, round_trip)
    if pilot.distance is None or pilot.distance == 0 or way.kind == SUMS:
        return limit
    free = pilot._replace(at_stake=math.inf)
    around = math.log(limit) - 25, math.log(limit)
    found = optimize.minimize_scalar(
        lambda log_step: predicted(math.exp(log_step), way, free, steps),
        bounds=around,
        method="bounded",
    )
    return float(math.exp(found.x)) if found.x < around[1] - 1e-3 else limit


def settled(
    algorithm: Algorithm,
    problem: Problem,
    stream: Stream,
    *,
    steps: int,
    seed: int = 0,
    round_trip: int = 1,
) -> Algorithm:
    """`algorithm` with a number for each step that is "auto"."""
    if not automatic_steps(algorithm):
        return algorithm
    way = way_of(algorithm, stream.clients, problem.parameters, steps)
    mirror = algorithm.mirror
    if mirror is not None and not mirror.quadratic:
        chosen = _mirror_step(algorithm, mirror, problem, stream, way.period, steps, seed)
    else:
        pilot = run_pilot(problem, stream, steps, seed=seed, domain=algorithm.domain)
        chosen = best_step(way, pilot, steps, round_trip)
    return with_steps(algorithm, constant(chosen))


def with_steps(algorithm: Algorithm, step: Step) -> Algorithm:
    """The algorithm with `step` for each step that is "auto"."""
    return algorithm.replace(**dict.fromkeys(automatic_steps(algorithm), step))


def _mirror_step(
    algorithm: Algorithm,
    mirror: Mirror,
    problem: Problem,
    stream: Stream,
    period: int,
    steps: int,
    seed: int,
) -> float:
    """The step of Mitra et al. 2021, Theorem 1, with mean squared gradients for L^2 and no drift at tau = 1."""
    if mirror.dual_norm is None:
        wanted = "be a number or a rule where the map is neither euclidean nor entropy"
        raise check.refuse(name_of(algorithm), "step", wanted, "auto")
    prefix = pilot_prefix(problem, stream, steps, seed=seed, domain=mirror.domain)
    with jax.enable_x64(True):
        start = np.asarray(mirror.start(jnp.asarray(prefix.start)))
    squares = row_gradients(prefix, start, mirror.dual_norm) ** 2 / mirror.strong_convexity
    steep = float(prefix.rows[1] @ squares) * (0.5 + 4 * (period - 1))
    return math.sqrt(float(divergence(mirror, start)) / (steps * max(steep, 1e-300)))
