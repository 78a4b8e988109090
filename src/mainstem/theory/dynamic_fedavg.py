"""Lemma and theorem on dynamic FedAvg (Rizk, Vlaski and Sayed 2020)."""

import math
from typing import Any

import numpy as np

from mainstem import check
from mainstem.base import Step
from mainstem.errors import MainstemError
from mainstem.measure.tracking import between_factor, tracking, within_factor
from mainstem.parts import constant
from mainstem.theory import beside
from mainstem.theory.bound import Bound, Rate


def dynamic_fedavg_lemma_1(
    *,
    clients: int,
    participants: int,
    held: Any,
    batch: Any,
    epochs: Any,
    smoothness: float,
    deviation: float,
    data: Any,
    model: Any,
) -> Bound:
    r"""The gradient noise at an iterate with mean-square deviation `deviation` (eqs. (23)-(27)).

    .. math:: E|s_i|^2 \le \beta_s^2 E|w^o_{i-1} - w_{i-1}|^2 + \sigma_s^2 + \epsilon^2

    `participants` is L, the number of the K `clients` that are sampled, `held` is N_k, `batch` B_k, `epochs`
    E_k, `smoothness` delta. `data` is E|grad Q_k - grad P_k|^2 at the minimiser (data variability),
    `model` is E|grad P_k|^2 there (model variability), each one number or one per client. Eq. (26)
    has tau_eps here: with the printed tau_eps^2 the bound fails for L > (K + 1) / 2.
    """
    owner = "dynamic_fedavg_lemma_1"
    clients = check.integer(owner, "clients", clients, least=1)
    participants = check.integer(owner, "participants", participants, least=1, most=clients)
    smooth = check.positive(owner, "smoothness", smoothness)
    deviation = check.at_least(owner, "deviation", deviation, 0)
    data, model = (
        _spread(check.amounts(owner, name, value, least=0), clients)
        for name, value in (("data", data), ("model", model))
    )
    within = _spread(within_factor(owner, held, batch, epochs), clients)
    between = between_factor(clients, participants)
    terms = {
        "deviation": np.mean(6 * within + 2 * between) * smooth**2 / participants * deviation,
        "data": 3 / participants * np.mean(within * data),
        "model": 2 / participants * between * np.mean(model),
    }
    terms = {name: float(value) for name, value in terms.items()}
    return Bound("Dynamic FedAvg, Lemma 1", "gradient noise, eq. (23)", 1, terms)


def _spread(values: Any, clients: int) -> np.ndarray:
    return np.broadcast_to(values, clients)


def dynamic_fedavg_theorem_1(
    steps: Any,
    *,
    step: float,
    curvature: float,
    noise: float,
    disagreement: float,
    drift: float,
) -> Rate:
    r"""The mean-square deviation after i steps, up to constants (eq. (28)).

    .. math:: O(\gamma^i) + O(\mu) (\sigma_s^2 + \epsilon^2) + O(\mu^{-1}) \sigma_q^2,
              \qquad \gamma = 1 - \nu \mu

    `step` is mu, `curvature` nu, `noise` sigma_s^2, `disagreement` epsilon^2, `drift` sigma_q^2 (of
    the minimiser). The theorem is "for sufficiently small steps": nu mu >= 1 is an error.
    `measure.tracking` gives the last two terms with their constants.
    """
    owner = "dynamic_fedavg_theorem_1"
    steps = check.step_counts(owner, "steps", steps)
    step, curve = (
        check.positive(owner, "step", step),
        check.positive(owner, "curvature", curvature),
    )
    if step * curve >= 1:
        raise check.refuse(owner, "step", f"be below {1 / curve:.6g} = 1 / curvature", step)
    known = {"noise": noise, "disagreement": disagreement, "drift": drift}
    noise, disagreement, drift = (
        check.at_least(owner, name, value, 0) for name, value in known.items()
    )
    whole = np.ones_like(steps, float)
    terms = {
        "start": (1 - step * curve) ** steps,
        "noise": step * noise * whole,
        "disagreement": step * disagreement * whole,
        "drift": drift / step * whole,
    }
    return Rate("Dynamic FedAvg, Theorem 1 (28)", "mean-square deviation", steps, terms)


# --- the step for a drift -------------------------------------------------------------------------


def dynamic_fedavg_drift(*, noise: float, disagreement: float, drift: float) -> Step:
    r"""Rizk et al. 2020: the step :math:`\sigma_q / \sqrt{\sigma_s^2 + \epsilon^2}` balances the terms of (28).

    All constants are assumed to be 1; `measure.tracking` measures them, and its `best_step` is more accurate.
    """
    owner = "dynamic_fedavg_drift"
    drift = check.positive(owner, "drift", drift)
    shaken = check.at_least(owner, "noise", noise, 0) + check.at_least(
        owner, "disagreement", disagreement, 0
    )
    if shaken == 0:
        raise check.refuse(owner, "noise", "be above 0, or disagreement", noise)
    return constant(math.sqrt(drift / shaken))


# --- the runs to which the theorem applies --------------------------------------------------------


def of_run(run: Any, at: np.ndarray) -> beside.Beside:
    """A run's mean-square deviation and the rate of Theorem 1, with its constant fitted."""
    beside.plain_exchange(run)
    algorithm, summary = run.algorithm, run.summary
    if algorithm.sync.period != 1:
        raise MainstemError("bound: the theorem is for an exchange after every step")
    participants = int(algorithm.participation.expected(summary.clients))
    held = {name: beside.declared(run, name) for name in ("epochs", "batch")}
    terms = tracking(
        run.problem, run.stream, participants=participants, steps=summary.steps, **held
    )
    bound = dynamic_fedavg_theorem_1(
        at,
        step=beside.constant_of(run),
        curvature=run.problem.curvature,
        noise=terms.noise,
        disagreement=terms.disagreement,
        drift=terms.drift,
    )
    measured = np.atleast_2d(run.column("deviation"))[:, at - 1]
    return beside.Beside(measured, bound.fitted(measured.mean(axis=0)))


THEOREMS = (dynamic_fedavg_lemma_1, dynamic_fedavg_theorem_1)
