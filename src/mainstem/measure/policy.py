"""The mean reward of a policy with a 95 % interval, from the recorded columns reward, ips or dr."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mainstem import check
from mainstem.errors import MainstemError

KINDS = ("dr", "ips", "reward")


class Worth(NamedTuple):
    """A mean reward with its 95 % interval."""

    estimate: float
    low: float
    high: float
    samples: int

    def __str__(self) -> str:
        return f"{self.estimate:.5f} [{self.low:.5f}, {self.high:.5f}] from {self.samples} rows"


def worth_of(trace: Mapping[str, np.ndarray], kind: str, clients: int, every: int = 1) -> Worth:
    """The mean over all rows of a replayed log.

    Rows are a martingale, not independent, because the policy learns from them. The interval is
    computed from the sums of each step, or block of `every` steps, which later decisions do not affect.
    """
    check.one_of("policy_value", "kind", kind, KINDS)
    if kind not in trace:
        raise MainstemError(f"policy_value: {kind} was not recorded: it wants problems.replay")
    sums = every * clients * np.ravel(trace[kind])
    rows = every * clients * np.ravel(trace.get("present", np.ones_like(trace[kind])))
    count = rows.sum()
    estimate = sums.sum() / count
    spread = 1.96 * float(np.sqrt(np.sum((sums - estimate * rows) ** 2))) / count
    return Worth(float(estimate), float(estimate - spread), float(estimate + spread), round(count))
