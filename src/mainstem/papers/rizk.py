"""Dynamic FedAvg's experiment (Rizk, Vlaski and Sayed 2020, Section IV).

Twenty clients (the paper's agents), of which seven participate in a step; logistic risk with rho |w|^2 in two
dimensions; E_k in [1, 10], B_k in [10, 20]; fresh data at every step. Deviations are squared, from the
minimiser of the population risk at the step; entry t is that of the model after t steps. Levels are those of
the mean over seeds, in dB.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

import mainstem as ms
from mainstem import parts
from mainstem.base import Algorithm, Problem, Stream
from mainstem.measure.tracking import between_factor, within_factor
from mainstem.papers.evidence import Evidence, all_of, near
from mainstem.papers.result import Numbers
from mainstem.papers.runner import Runner
from mainstem.report import figures
from mainstem.streams.walking import least_risk

PAPER = "Rizk, Vlaski and Sayed 2020"
AGENTS, HEARD, HOLDS = 20, 7, 100
DRAW = np.random.default_rng(0)
EPOCHS, BATCH = DRAW.integers(1, 11, AGENTS), DRAW.integers(10, 21, AGENTS)
SPREAD, RHO = 0.1, 1.0  # sigma_c^2 in the first and third experiment
SETTLED = 0.6  # a level is the mean after this share of the run
CHOSEN = (
    "rho = 1: the paper leaves it open, and finds the best step at 0.1, which is so for this rho.",
    "N_k = 100, w*_0 ~ N(0, I), feature variances uniform in [0.5, 1.5], E_k and B_k drawn once: all open.",
    "Data are redrawn at every step, and deviations are from the minimiser of the population risk: "
    "against the drawn data the MSD has a floor that hides the effect.",
    "w_0 = 0, and variances are per coordinate.",
)
SAMPLED = 2000
EARLY = 25  # steps, a quarter of 1 / mu for mu = 0.01: the MSD is still above any level
ALLOWED = 0.1  # relative difference of rates that count as equal


@functools.cache
def problem(rho: float = RHO) -> Problem:
    """Logistic risk with rho |w|^2, over batches."""
    return ms.problems.batched(ms.problems.logistic(2, ridge=2 * rho, intercept=False))


@functools.cache
def world(drift: float = 0.0, spread: float = SPREAD, rho: float = RHO) -> Stream:
    """The separating line drifts (sigma_q^2 = `drift`), the clients differ (sigma_c^2 = `spread`)."""
    return ms.streams.walking(AGENTS, HOLDS, drift=drift, spread=spread, ridge=2 * rho)


def algorithm(step: float) -> Algorithm:
    """Dynamic FedAvg with step size mu, and the epochs and batches of all experiments."""
    return ms.dynamic_fedavg(step, epochs=EPOCHS, batch=BATCH, participation=parts.exactly(HEARD))


def deviation(
    runner: Runner,
    step: float,
    drift: float = 0.0,
    spread: float = SPREAD,
    rho: float = RHO,
    *,
    steps: int,
    seeds: int,
) -> np.ndarray:
    """The squared deviation [seeds, steps] of dynamic FedAvg with this step size mu."""
    made = (algorithm(step), problem(rho), world(drift, spread, rho))
    run = runner.run(*made, steps=steps, seeds=seeds, measure=["deviation"])
    return np.atleast_2d(run.column("deviation"))


def small_step(runner: Runner, *, seeds: int) -> np.ndarray:
    """trace(H^-1 R_s) / 2 for each seed's stream without drift: times mu, the MSD of a small step.

    H is the Hessian of the aggregate risk and R_s the covariance of the gradient noise, both at the minimiser,
    from `SAMPLED` samples of each client. `measure.tracking` computes the same for all streams together;
    streams differ by several dB, so each seed is compared with its own here.
    """
    best = jax.jit(lambda lines, scales: least_risk(lines, scales, 2 * RHO))
    return np.array([_small_step(best, runner.seed + n) for n in range(seeds)])


def _small_step(solved: Callable[[Any, Any], Any], seed: int) -> float:
    stream, ridge = world(), 2 * RHO
    drawn, line = stream.drawn(seed), stream.chunk(seed, 1, 1)[0, 0, 1]
    assert drawn is not None
    agents = drawn.each
    lines = line + agents.offsets
    best = np.asarray(solved(lines, agents.scales), np.float64)
    draw = np.random.default_rng([seed, 12])
    features = agents.scales[:, None, None] * draw.normal(size=(AGENTS, SAMPLED, 2))
    folded = features * np.sign(np.einsum("kni,ki->kn", features, lines))[..., None]
    wrong = 1 / (1 + np.exp(folded @ best))
    slopes = ridge * best - wrong[..., None] * folded
    bend = np.einsum("kn,kni,knj->ij", wrong * (1 - wrong), folded, folded) / (AGENTS * SAMPLED)
    means = slopes.mean(axis=1)
    within = np.einsum("kni,knj->kij", slopes, slopes) / SAMPLED - np.einsum(
        "ki,kj->kij", means, means
    )
    between = np.einsum("ki,kj->kij", means, means) - within / SAMPLED
    share = within_factor("rizk", HOLDS, BATCH, EPOCHS) + 1 / HOLDS
    noise = share[:, None, None] * within + between_factor(AGENTS, HEARD) * between
    shaken = noise.mean(axis=0) / HEARD
    return float(np.trace(np.linalg.solve(bend + ridge * np.eye(2), shaken)) / 2)


def decibels(power: np.ndarray) -> np.ndarray:
    """10 log10 of the mean over the seeds, the first axis, as jackknife pseudo-values.

    >>> decibels(np.array([[1.0, 10.0], [1.0, 10.0]])).tolist()
    [[0.0, 10.0], [0.0, 10.0]]
    """
    count, total = len(power), power.sum(axis=0)
    without = 10 * np.log10((total - power) / (count - 1))
    return np.asarray(count * 10 * np.log10(total / count) - (count - 1) * without)


def late(deviations: np.ndarray, first: int | None = None) -> np.ndarray:
    """The mean squared deviation of each seed from step `first` on, or over the last two fifths."""
    first = int(SETTLED * deviations.shape[1]) if first is None else first
    return np.asarray(deviations[:, first:].mean(axis=1))


def level(deviations: np.ndarray) -> np.ndarray:
    """The MSD in dB after it has settled, as pseudo-values [seeds]."""
    return decibels(late(deviations))


def rate(deviations: np.ndarray, steps: int) -> np.ndarray:
    """The decrease of the MSD in dB per step over the first `steps`, as pseudo-values [seeds]."""
    return (decibels(deviations[:, 0]) - decibels(deviations[:, steps])) / steps


def as_fast(named: Numbers) -> Evidence:
    """The rate of each run equals that of the first, within a tenth of it."""
    rates = {name: rate(run, EARLY) for name, run in named.items()}
    (one, first), *others = rates.items()
    scale = first.mean()
    found = all_of(
        *(near({name: each / scale, one: first / scale}, ALLOWED) for name, each in others)
    )
    text = f"dB a step over the first {EARLY}, relative to {scale:.4f}: {found.measured}"
    return Evidence(text, found.margins)


def drawn(runs: Numbers, theory: Mapping[str, float] | None = None) -> Any:
    """The MSD of each run over the steps, with a band; dashed lines are the levels of `theory`, if any.

    With `theory`, the steps, from 1 on, have a logarithmic axis: step sizes differ by orders of magnitude.
    """
    first = 0 if theory is None else 1
    steps = {name: np.arange(first, run.shape[1]) for name, run in runs.items()}
    bounds = {
        name: (f"theory, {name}", np.full(len(steps[name]), level))
        for name, level in (theory or {}).items()
    }
    return figures.curves(
        {name: decibels(run[:, first:]) for name, run in runs.items()},
        "MSD (dB)",
        steps=steps,
        bounds=bounds,
        log="x" if theory else "",
        across="step i",
    )
