"""Figures of runs: quantiles over clients, and curves beside the bounds of their theorems."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mainstem.report import figures
from mainstem.theory.beside import Beside
from mainstem.theory.bound import Bound, Rate


def over_clients(values: np.ndarray) -> dict[str, np.ndarray]:
    """From a number for each client [seeds, steps, clients]: quantiles over the clients of their running means."""
    counts = np.cumsum(~np.isnan(values), axis=1)
    means = np.cumsum(np.nan_to_num(values), axis=1) / np.where(counts > 0, counts, np.nan)
    shares = {"worst tenth of the clients": 0.9, "median client": 0.5, "best tenth": 0.1}
    return {name: np.nanquantile(means, share, axis=2) for name, share in shares.items()}


def overlaid(found: Mapping[str, Beside]) -> Any:
    """A figure of measured curves, each with its bound dashed."""
    units = {each.bound.of for each in found.values()}
    return figures.curves(
        {name: each.measured for name, each in found.items()},
        units.pop() if len(units) == 1 else "regret",
        steps={name: np.asarray(each.bound.steps) for name, each in found.items()},
        bounds={
            name: (bound_title(each.bound), np.asarray(each.bound.value))
            for name, each in found.items()
        },
        log="xy",
    )


def bound_title(bound: Bound | Rate) -> str:
    """The theorem's name, and that it is only a rate if it is."""
    if isinstance(bound, Rate):
        return f"{bound.theorem}, constant fitted: no guarantee"
    return bound.theorem
