"""The theorem that speaks of a run, with the constants that were measured on what the run saw."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from mainstem.base import Step
from mainstem.errors import MainstemError
from mainstem.measure import constants, geometry
from mainstem.measure.heterogeneity import heterogeneity
from mainstem.measure.prefix import Prefix
from mainstem.measure.tracking import tracking
from mainstem.theory import (
    Bound,
    Rate,
    dynamic_fedavg_theorem_1,
    fedomd_theorem_1,
    fedomd_theorem_2,
    fedres_theorem_2,
    fedsea_theorem_1,
    fedsea_theorem_2,
    ofediq_theorem_1,
    ofediq_theorem_2,
    rounding_variance,
)
from mainstem.theory.ofediq import SUMMED

POINTS = 12  # of a curve


class Beside(NamedTuple):
    """What was measured, and what a theorem says of it, in the theorem's units."""

    measured: np.ndarray  # [seeds, prefixes]
    bound: Bound | Rate


def beside(run: Any, at: Sequence[int] | None = None) -> Beside:
    """The run's regret at some prefixes and the bound of its algorithm's theorem there."""
    found = _THEOREMS.get(run.name)
    if found is None or run.algorithm is None or run.problem is None or run.stream is None:
        raise MainstemError(
            f"bound: there is none for {run.name}, only for {', '.join(sorted(_THEOREMS))}"
        )
    if run.summary.shared and "network" in run.spec["simulate"] and run.name != "fedres_sgd":
        raise MainstemError("bound: the theorems are for links without delay")
    period = int(run.algorithm.spec.arguments.get("period", 1))
    return found(run, _prefixes(run.summary.steps, period if run.name == "ofediq" else 1, at))


def _prefixes(steps: int, period: int, at: Sequence[int] | None) -> np.ndarray:
    if at is not None:
        return np.atleast_1d(np.asarray(at, int))
    rounds = max(1, steps // period)
    return period * np.unique(np.geomspace(1, rounds, POINTS).round().astype(int))


def _prefix(run: Any, steps: int, seed: int) -> Prefix:
    return Prefix(run.problem, run.stream, int(steps), seed=seed, domain=run.domain)


def _averaged(run: Any, of: Any) -> Bound:
    """The mean over seeds of what `of(seed)` bounds: it bounds the mean regret."""
    found = [of(seed) for seed in run.summary.seeds]
    terms = {
        name: np.mean([np.broadcast_to(b.terms[name], np.shape(b.steps)) for b in found], axis=0)
        for name in found[0].terms
    }
    return found[0]._replace(terms=terms)


# --- steps, as the theorems know them -------------------------------------------------------------


class _Falling(NamedTuple):
    """2 / (sigma (t + shift))."""

    sigma: float
    shift: float


def _schedule(run: Any) -> float | _Falling:
    """The run's step: a constant, or a falling one; others are in no theorem."""
    step = run.algorithm.spec.arguments["step"]
    if not isinstance(step, Step):
        return float(step)
    if step.schedule:
        with jax.enable_x64(True):
            slow = [1 / float(step.rate((), jax.numpy.zeros(1), float(t))[0]) for t in (1, 2, 1001)]
        if slow[0] == slow[1] == slow[2]:
            return 1 / slow[0]
        sigma = 2 * (slow[1] - slow[0])
        if np.isclose(slow[2], slow[0] + 1000 * sigma / 2):
            return _Falling(sigma, max(0.0, 2 * slow[0] / sigma - 1))
    raise MainstemError(f"bound: no theorem has the step {step.spec}: take a constant or a rule")


def _constant(run: Any, theorem: str) -> float:
    found = _schedule(run)
    if isinstance(found, _Falling):
        raise MainstemError(f"bound: {theorem} is for a constant step")
    return found


# --- each algorithm's theorem ---------------------------------------------------------------------


def _everyone(run: Any) -> None:
    if not run.algorithm.participation.everyone:
        raise MainstemError("bound: the theorem is for full participation")


def _fedomd(run: Any, at: np.ndarray) -> Beside:
    _everyone(run)
    mirror = run.algorithm.spec.arguments.get("mirror")
    steps, gap = run.summary.steps, geometry.gap(run.algorithm.sync, run.summary.steps)
    schedule = _schedule(run)
    norm = "max" if mirror is not None and mirror.spec.name == "entropy" else "l2"

    def of(seed: int) -> Bound:
        prefix = _prefix(run, steps, seed)
        steepest = constants.lipschitz(prefix, norm)
        if steepest.how == "at least" or not np.isfinite(steepest.value):
            raise MainstemError("bound: the losses have no known Lipschitz constant on the domain")
        if isinstance(schedule, float):
            if mirror is None:
                raise MainstemError("bound: Theorem 1 wants a bounded domain: give a mirror")
            far = float(geometry.divergence(mirror, prefix.start))
            known = {"lipschitz": steepest.value, "divergence": far}
            return fedomd_theorem_1(at, gap=gap, step=schedule, **known)
        curve = float(constants.curvature(prefix))
        if schedule.shift > 1e-6 or schedule.sigma > 2 * curve * (1 + 1e-6) or norm == "max":
            raise MainstemError(
                "bound: Theorem 2 is for the step 2 / (sigma t) with sigma at most twice the "
                f"curvature {curve:g}"
            )
        return fedomd_theorem_2(at, gap=gap, lipschitz=steepest.value, curvature=schedule.sigma / 2)

    return Beside(_regret(run, at, "collective"), _averaged(run, of))


def _fedsea(run: Any, at: np.ndarray) -> Beside:
    _everyone(run)
    if run.domain.support is not None:
        raise MainstemError("bound: FedSEA's theorems assume that no projection acts")
    schedule = _schedule(run)
    seed = run.summary.seeds[0]
    prefix = _prefix(run, run.summary.steps, seed)
    known = heterogeneity(prefix)
    if np.isnan(known.noise).any():
        raise MainstemError("bound: the noise of these losses grows with the model: no sigma^2")
    world: dict[str, Any] = {
        "clients": run.summary.clients,
        "gap": geometry.gap(run.algorithm.sync, run.summary.steps),
        "smoothness": known.smoothness,
    }
    found = []
    for t, best in zip(at, prefix.bests(at, expected=True).points, strict=True):
        drift, far = known.against(best)[:t], float(np.linalg.norm(best - prefix.start))
        parts = {"noise": known.noise[:t], "spatial": known.spatial[:t], "temporal": drift}
        if isinstance(schedule, float):
            means: Any = {name: float(np.mean(part)) for name, part in parts.items()}
            bound = fedsea_theorem_1(int(t), step=schedule, distance=far, **world, **means)
        else:
            most: Any = {name: float(np.max(part)) for name, part in parts.items()}
            bound = fedsea_theorem_2(
                int(t),
                shift=schedule.shift,
                curvature=schedule.sigma,
                distance=far,
                **world,
                **most,
            )
        found.append(bound)
    return Beside(_regret(run, at, "expected"), _joined(found, at))


def _joined(found: Sequence[Bound], at: np.ndarray) -> Bound:
    """Bounds for one horizon each as one for several."""
    terms = {name: np.array([float(b.terms[name]) for b in found]) for name in found[0].terms}
    return found[0]._replace(steps=at, terms=terms)


def _ofediq(run: Any, at: np.ndarray) -> Beside:
    chosen = run.algorithm.spec.arguments
    clients, period = run.summary.clients, int(chosen.get("period", 1))
    levels, rate = chosen.get("levels"), chosen.get("rate", 1.0)
    if chosen.get("collect") is not None and chosen["collect"].spec.name != "total":
        raise MainstemError("bound: the theorem is for collect=total()")
    step = _constant(run, "the theorem")

    def of(seed: int) -> Bound:
        prefix = _prefix(run, at[-1], seed)
        smooth = constants.smoothness(prefix)
        if smooth.how == "at least":
            raise MainstemError("bound: the theorems are for convex losses of known smoothness")
        known = {
            "clients": clients,
            "rate": rate,
            "step": step,
            "smoothness": float(smooth),
            "distance": np.linalg.norm(prefix.bests(at).points - prefix.start, axis=1),
            "variance": constants.variances(prefix, at),
        }
        if levels is None and period == 1:
            return ofediq_theorem_1(at, **known)
        blocks = chosen.get("blocks", 1)
        rounding = 0.0 if levels is None else rounding_variance(run.summary.size, levels, blocks)
        return ofediq_theorem_2(at, period=period, rounding=rounding, **known)

    return Beside(clients * _regret(run, at, "global"), _averaged(run, of))


def _dynamic(run: Any, at: np.ndarray) -> Beside:
    heard = run.algorithm.participation.spec.arguments.get("count", run.summary.clients)
    chosen = run.algorithm.spec.arguments
    rest = {name: chosen[name] for name in ("epochs", "batch") if name in chosen}
    terms = tracking(run.problem, run.stream, heard=heard, horizon=run.summary.steps, **rest)
    bound = dynamic_fedavg_theorem_1(
        at,
        step=_constant(run, "the theorem"),
        curvature=run.problem.curvature,
        noise=terms.noise,
        disagreement=terms.disagreement,
        drift=terms.drift,
    )
    measured = np.atleast_2d(run.column("deviation"))[:, at - 1]
    return Beside(measured, bound.fitted(measured.mean(axis=0)))


def _fedres(run: Any, at: np.ndarray) -> Beside:
    """A rate: its constants are rough, taken from the losses and models at the end of the run."""
    linear, seed = run.problem.linear, run.summary.seeds[0]
    prefix = _prefix(run, min(run.summary.steps, 200), seed)
    squares = constants.row_squares(prefix)
    models = run.client_models.reshape(len(run.summary.seeds), run.summary.clients, -1)[0]
    shared = np.size(run._model["server"]) // len(run.summary.seeds)
    late = float(np.mean(np.atleast_2d(run.loss)[:, -max(1, run.summary.steps // 10) :]))
    links = run.spec["simulate"].get("network", {"up": 0, "down": 0})
    norms = np.sum(models[:, :shared] ** 2, axis=1).mean(), np.sum(models[:, shared:] ** 2)
    rate = fedres_theorem_2(
        at,
        clients=run.summary.clients,
        norm=max(float(sum(norms)), 1e-12),
        noise=max(2 * linear.bend * late * float(squares.mean()), 1e-12),
        smoothness=linear.bend * float(squares.max()),
        gradient=float(constants.row_gradients(prefix, prefix.start).max()),
        radius=max(float(np.sqrt(np.sum(models**2, axis=1)).max()), 1e-12),
        round_trip=1 + int(np.max(links["up"]) + np.max(links["down"])),
    )
    measured = _regret(run, at, "personal") / at
    return Beside(measured, rate.fitted(measured.mean(axis=0)))


def _regret(run: Any, at: np.ndarray, kind: str) -> np.ndarray:
    return np.atleast_2d(run.regret([int(t) for t in at], kind=kind).values)


_THEOREMS = {
    "dynamic_fedavg": _dynamic,
    "fedogd": _ofediq,
    "fedomd": _fedomd,
    "fedres_sgd": _fedres,
    "fedsea": _fedsea,
    "ofedavg": _ofediq,
    "ofediq": _ofediq,
}


def per_client(found: Beside, clients: int) -> Beside:
    """In means over clients, where the paper sums over them."""
    if found.bound.of != SUMMED:
        return found
    terms = {name: value / clients for name, value in found.bound.terms.items()}
    bound = found.bound._replace(terms=terms, of="regret, mean over clients")
    return Beside(found.measured / clients, bound)
