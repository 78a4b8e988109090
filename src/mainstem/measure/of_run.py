"""Measures of a run that some papers use, as functions of the run."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from mainstem.base import Problem, Stream
from mainstem.errors import MainstemError
from mainstem.measure.exam import examined
from mainstem.measure.policy import Worth, worth_of


class Recorded(Protocol):
    """The attributes of a run that these functions read."""

    problem: Problem | None
    summary: Any
    trace: Mapping[str, np.ndarray]
    models: Mapping[str, np.ndarray]

    @property
    def stream(self) -> Stream | None:
        """The stream, if it is available."""

    @property
    def client_models(self) -> np.ndarray:
        """Each client's final model."""

    def column(self, name: str) -> np.ndarray:
        """A recorded column."""

    def running(self, name: str) -> np.ndarray:
        """The running mean of a column."""

    def unravelled(self, vector: np.ndarray) -> Any:
        """A model in the structure of the problem's parameters."""


def bandit_regret(run: Recorded) -> np.ndarray:
    """The running mean of a bandit's regret, over clients and steps: Agarwal et al. 2020, eq. (11)."""
    return run.running("regret")


def policy_value(run: Recorded, kind: str = "dr") -> Worth:
    """The mean reward of the policy on a replayed log: "ips", "dr", or the log's own "reward"."""
    return worth_of(run.trace, kind, run.summary.clients, run.summary.every)


def msd(run: Recorded) -> np.ndarray:
    """The mean-square deviation of Rizk et al. 2020 in dB, averaged over the seeds.

    Entry t, from t = 0, compares the model after t steps with the minimiser of the aggregate risk
    at step t; needs `measure=["deviation"]`.
    """
    return np.asarray(10 * np.log10(np.atleast_2d(run.column("deviation")).mean(axis=0)))


def held_out(run: Recorded) -> dict[str, np.ndarray]:
    """Each metric of the final models on held-out samples, for each client's own task: [clients].

    For streams with held-out samples, such as `streams.tasks`; [seeds, clients] for several seeds.
    """
    if run.problem is None or run.stream is None or run.stream.exam is None:
        raise MainstemError("held_out: the stream holds no samples out; streams.tasks does")
    return examined(run.problem, run.stream, run.summary.seeds, run.client_models)


def average_model(run: Recorded) -> Any:
    """The average predictor of Mitra et al. 2021, eq. (14); needs `measure=["average"]`."""
    if "average" not in run.models:
        raise MainstemError('average_model: it was not kept: simulate(..., measure=["average"])')
    return run.unravelled(run.models["average"])
