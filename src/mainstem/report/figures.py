"""Figures: curves with the spread over seeds, in a form fit for print."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mainstem.errors import MainstemError

LABELS = {
    "loss": "mean loss at the step",
    "accuracy": "accuracy(t)",
    "mse": "MSE(t)",
    "uplink_bits": "bits sent up",
    "uplink_bytes": "bytes sent up",
    "regret": "regret",
    "consensus": "consensus error V(t)",
}
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def pyplot() -> Any:
    """matplotlib's pyplot without a screen, or a refusal that says how to get it."""
    try:
        import matplotlib
    except ImportError:
        raise MainstemError("figures need matplotlib: pip install 'mainstem[lab]'") from None
    matplotlib.use("Agg", force=False)
    import matplotlib.pyplot as plt

    return plt


def curves(
    named: Mapping[str, np.ndarray],
    label: str,
    *,
    steps: np.ndarray | Mapping[str, np.ndarray] | None = None,
    bounds: Mapping[str, tuple[str, np.ndarray]] | None = None,
    log: str = "",
) -> Any:
    """One line for each name from values [seeds, steps]; a band of two standard errors over seeds.

    `steps` says where the values are (for each), if not at every step; `bounds` (a title and values for
    each) are drawn dashed; `log` names the axes with a logarithmic scale ("x", "y", "xy").
    """
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    for (name, values), colour in zip(named.items(), _cycle(len(named)), strict=True):
        t = np.arange(1, values.shape[1] + 1) if steps is None else steps
        t = t[name] if isinstance(t, Mapping) else t
        mean = values.mean(axis=0)
        axes.plot(t, mean, label=name, color=colour, linewidth=1.6)
        if values.shape[0] > 1:
            error = 2 * values.std(axis=0, ddof=1) / np.sqrt(values.shape[0])
            axes.fill_between(t, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
        if bounds and name in bounds:
            title, most = bounds[name]
            axes.plot(t, most, linestyle="--", color=colour, linewidth=1.0, label=title)
    axes.set_xlabel("step t")
    axes.set_ylabel(LABELS.get(label, label))
    axes.set_xscale("log" if "x" in log else "linear")
    axes.set_yscale("log" if "y" in log else "linear")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    plt.close(figure)
    return figure


def _cycle(count: int) -> list[str]:
    return [COLOURS[n % len(COLOURS)] for n in range(count)]


def distinct(names: Sequence[str]) -> list[str]:
    """The names, numbered where two are the same.

    >>> distinct(["fedogd", "ofediq", "ofediq"])
    ['fedogd', 'ofediq', 'ofediq 2']
    """
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return found
