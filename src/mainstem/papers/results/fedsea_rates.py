"""FedSEA's regret against the number of steps T, convex and strongly convex (Sahu et al. 2026, Theorems 1 and
2)."""

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

import mainstem as ms
from mainstem import parts, random, theory
from mainstem.base import At, Form, Sample, Stream, constant
from mainstem.papers import sahu
from mainstem.papers.evidence import (
    Evidence,
    all_of,
    between,
    exponent,
    logarithmic,
    rising,
    shown,
)
from mainstem.papers.result import Claim, Numbers, Result
from mainstem.papers.runner import Runner
from mainstem.report import figures
from mainstem.value import at_least, integer, value

CLIENTS = 10
CONDITION = 10.0  # L / mu, L = 1
CURVATURE = 1 / CONDITION
RADIUS = 3.0
MOVES = {"K² = 0": 0.0, "K² = σ²/(LM)": 1 / CLIENTS}
CONVEX = {f"convex: {name}": temporal for name, temporal in MOVES.items()}
STRONG = {f"strongly convex: {name}": temporal for name, temporal in MOVES.items()}
SHIFTED, BALL, PRINTED = "2/(μ(t + t₀))", f"2/(μt) on a ball of radius {RADIUS:g}", "2/(μt)"
STEPS = (SHIFTED, BALL, PRINTED)
EARLY = np.arange(2, 1001, 2)
SQUARE = 1 - CURVATURE
FEATURE = np.full(sahu.DIMENSION, math.sqrt(SQUARE / sahu.DIMENSION))


@value
class steep(Stream):
    """Targets for `linear(5, ridge=1 / kappa, intercept=False)` whose losses have L = 1 and mu = 1 / kappa.

    All features are one vector u with |u|^2 = 1 - mu, so that the Hessian is u u' + mu I; the targets are
    normal around 1, shifted up and down in turn. sigma^2 = 1, and the mean of K_t^2 is `temporal`.
    """

    clients: int = integer(least=1)
    temporal: float = at_least(0, default=0.0)

    def _center(self, t: Any) -> Any:
        moved = jnp.sqrt(2 * self.temporal / SQUARE)
        return 1 + jnp.where(t % 2 == 0, moved, -moved)

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        target = self._center(at.t) + random.normal(at.key, ()) / math.sqrt(SQUARE)
        return Sample(constant(FEATURE), target)

    def expected(self, t: Any, k: Any) -> Form:
        matrix = np.outer(FEATURE, FEATURE) + CURVATURE * np.eye(sahu.DIMENSION)
        center = self._center(t)
        return Form(constant(matrix), center * constant(FEATURE), 0.5 * (center**2 + 1 / SQUARE))


def measure(runner: Runner, *, horizons: Sequence[int], steps: int, seeds: int) -> Numbers:
    """Regret at each T with its own step size (convex), and along one run (strongly convex)."""
    numbers = {"horizons": np.array(horizons)}
    for name, temporal in CONVEX.items():
        stream, known = sahu.world(CLIENTS, temporal=temporal), {"temporal": temporal, **sahu.KNOWN}
        found, bounds = [], []
        for horizon in horizons:
            step = theory.fedsea_convex(horizon, clients=CLIENTS, **known)
            found.append(sahu.regret(runner, ms.fedsea(step), stream, [horizon], seeds=seeds))
            rate = float(step.rate((), jnp.zeros(()), 1)[0])
            bounds.append(
                theory.fedsea_theorem_1(
                    horizon, clients=CLIENTS, period=1, step=rate, spatial=0.0, **known
                )
            )
        numbers[name] = np.concatenate(found, axis=1)
        numbers[f"bound, {name}"] = np.array([float(bound) for bound in bounds])
    shifted = theory.fedsea_strongly_convex(CURVATURE, smoothness=1.0)
    first = 4 * theory.fedsea_shift(smoothness=1.0, curvature=CURVATURE, period=1)
    numbers["prefixes"] = sahu.spaced(int(first), steps, 30)
    at = np.union1d(EARLY, numbers["prefixes"])
    for name, temporal in STRONG.items():
        regret = on_steep(runner, ms.fedsea(shifted), temporal, at, seeds)
        numbers[name] = regret[:, np.isin(at, numbers["prefixes"])]
        if temporal == 0:
            numbers[SHIFTED] = regret[:, np.isin(at, EARLY)]
    printed, ball = theory.fedsea_printed(CURVATURE), parts.l2_ball(RADIUS)
    numbers[BALL] = on_steep(runner, ms.fedsea(printed, domain=ball), 0.0, EARLY, seeds)
    numbers[PRINTED] = on_steep(runner, ms.fedsea(printed), 0.0, EARLY, seeds)
    return numbers


def on_steep(runner: Runner, algorithm: Any, temporal: float, at: Any, seeds: int) -> np.ndarray:
    """Regret on the losses of condition number kappa."""
    problem = ms.problems.linear(sahu.DIMENSION, ridge=CURVATURE, intercept=False)
    stream = steep(CLIENTS, temporal)
    return sahu.regret(runner, algorithm, stream, at, seeds=seeds, problem=problem)


def like_root(numbers: Numbers) -> Evidence:
    """The exponents of T are near 1/2."""
    powers = {name: exponent(numbers["horizons"].tolist(), numbers[name]) for name in CONVEX}
    return all_of(
        *(between(f"{name}: exponent of T", each, 0.25, 0.75) for name, each in powers.items())
    )


def bounded(numbers: Numbers) -> Evidence:
    """The largest share of the bound that the mean regret reaches, over all T."""
    shares = {name: numbers[name] / numbers[f"bound, {name}"] for name in CONVEX}
    most = {name: share[:, share.mean(axis=0).argmax()] for name, share in shares.items()}
    text = ", ".join(f"{name}: at most {shown(share)} of it" for name, share in most.items())
    return Evidence(text, tuple(1 - share for share in most.values()))


def like_log(numbers: Numbers) -> Evidence:
    """With the shifted step, the regret grows like log T rather than its root."""
    return all_of(*(logarithmic(name, numbers["prefixes"], numbers[name]) for name in STRONG))


def unstable(numbers: Numbers) -> Evidence:
    """Regret at the last of the early steps, and the share of the printed step's regret incurred by step 2
    kappa."""
    last = {f"log₁₀ R with {name}": np.log10(numbers[name][:, -1]) for name in STEPS}
    by = np.searchsorted(EARLY, 2 * CONDITION)
    share = numbers[PRINTED][:, by] / numbers[PRINTED][:, -1]
    most = Evidence(f"{share.min():.4f} of the last is there by step {EARLY[by]}", (share - 0.9,))
    return all_of(rising(last), most)


def draw(numbers: Numbers) -> Any:
    """Theorem 1, Theorem 2, and the early steps of the latter."""
    titles = (
        "Theorem 1, step for each T",
        f"Theorem 2, κ = {CONDITION:g}",
        f"its first steps, κ = {CONDITION:g}",
    )
    sets = (CONVEX, STRONG, STEPS)
    titled = {
        title: {name: numbers[name] for name in names}
        for title, names in zip(titles, sets, strict=True)
    }
    where = dict.fromkeys(CONVEX, numbers["horizons"])
    where |= dict.fromkeys(STRONG, numbers["prefixes"])
    where |= dict.fromkeys(STEPS, EARLY)
    figure = figures.panels(
        titled,
        "expected regret $E[R_T]$, eq. (3)",
        steps=where,
        bounds={
            name: (f"bound, {name.split(': ')[1]}", numbers[f"bound, {name}"]) for name in CONVEX
        },
        log="xy",
        across="horizon T",
    )
    figure.axes[1].set_yscale("linear")
    _, top = figure.axes[0].get_ylim()
    figure.axes[0].set_ylim(top=10 * top)
    return sahu.tidy(figure, ticks={0: numbers["horizons"]})


RESULT = Result(
    name="fedsea-rates",
    paper=f"{sahu.PAPER}, Theorems 1 and 2",
    about="FedSEA's expected regret against the horizon: convex with the tuned step, strongly convex.",
    full={"horizons": (256, 1024, 4096, 16384), "steps": 16384, "seeds": 60},
    quick={"horizons": (256, 1024, 4096), "steps": 8192, "seeds": 40},
    measure=measure,
    claims=(
        Claim(
            "For smooth and convex losses, we prove an O(sqrt(T)) bound: the regret grows like that.",
            like_root,
        ),
        Claim("Theorem 1's bound, with explicit constants, is above the regret.", bounded),
        Claim(
            "For smooth and strongly convex losses, we prove an O(log T) bound: the regret grows like that.",
            like_log,
        ),
        Claim(
            "Not the paper's words: its step 2 / (mu t) is unstable for t below the condition number, "
            "2 / (mu (t + t_0)) is not.",
            unstable,
        ),
    ),
    draw=draw,
    minutes=1.0,
    chosen=(
        *sahu.CHOSEN,
        "M = 10 and tau = 1: both theorems hold for any.",
        "K^2 is 0, and sigma^2 / (L M), the edge of Remark 2's benign regime.",
        "The strongly convex losses have kappa = 10: at kappa = 1 every step is stable.",
        "Theorem 2's fit is over T of at least 4 t_0: before that the step hardly falls.",
    ),
)
