"""Figures for print: curves and bars with the spread over seeds."""

import base64
import html
import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mainstem.errors import MainstemError

LABELS = {
    "loss": "mean loss at the step",
    "accuracy": "accuracy(t)",
    "mse": "MSE(t)",
    "auc": "AUC(t)",
    "f1": "F1(t)",
    "log_loss": "log loss(t)",
    "pinball": "pinball loss(t) at level 0.5",
    "error_quantile": "90 % quantile of the error(t)",
    "uplink_bits": "bits sent up",
    "uplink_bytes": "bytes sent up",
    "regret": "regret",
    "consensus": "consensus error V(t)",
}
HIGHER = ("accuracy", "auc", "f1")  # the curves of which more is better
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
ENTRY, LETTER = 0.7, 0.085  # inches in a legend: the line before a name, and one letter


def title_of(name: str) -> str:
    """What a curve or a column is called in a figure.

    >>> title_of("mse"), title_of("loss_per_client")
    ('MSE(t)', 'loss per client')
    """
    return LABELS.get(name, name.replace("_", " "))


def pyplot() -> Any:
    """matplotlib's pyplot without a display; if it is missing, an error states how to install it."""
    try:
        import matplotlib
    except ImportError:
        raise MainstemError("figures need matplotlib: pip install 'mainstem[lab]'") from None
    if "MPLBACKEND" not in os.environ:  # a notebook sets one that shows figures
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
    across: str = "step t",
    marked: bool = False,
) -> Any:
    """One line for each name from values [seeds, steps]; a band of two standard errors over seeds.

    `steps` gives the steps of the values (for all, or for each name), if not every step; `bounds` (a title
    and values for each name) are drawn dashed; `log` names the axes with a logarithmic scale ("x", "y",
    "xy"); `across` is the label of the horizontal axis; `marked` adds a marker at every point.
    """
    return panels(
        {"": named}, label, steps=steps, bounds=bounds, log=log, across=across, marked=marked
    )


def panels(
    titled: Mapping[str, Mapping[str, np.ndarray]],
    label: str,
    *,
    steps: np.ndarray | Mapping[str, np.ndarray] | None = None,
    bounds: Mapping[str, tuple[str, np.ndarray]] | None = None,
    log: str = "",
    across: str | Mapping[str, str] = "step t",
    marked: bool = False,
) -> Any:
    """`curves` side by side, with one legend; a name has the same colour in all panels."""
    plt = pyplot()
    columns = {4: 2, 7: 4, 8: 4}.get(len(titled), min(len(titled), 3))
    rows = -(-len(titled) // columns)
    size = (6.4, 4.0) if len(titled) == 1 else (3.1 * columns, 2.6 * rows + 0.5)
    figure, grid = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    names = list(dict.fromkeys(name for named in titled.values() for name in named))
    colours = dict(zip(names, _cycle(len(names)), strict=True))
    for axes in grid.flat[len(titled) :]:
        axes.set_visible(False)
    for n, ((title, named), axes) in enumerate(zip(titled.items(), grid.flat, strict=False)):
        scales = log + "y" * _explodes(named.values())
        for name, values in named.items():
            t = np.arange(1, values.shape[1] + 1) if steps is None else steps
            t = t[name] if isinstance(t, Mapping) else t
            _line(axes, t, values, name, colours[name], marked, "y" in scales)
            if bounds and name in bounds:
                text, most = bounds[name]
                axes.plot(t, most, linestyle="--", color=colours[name], linewidth=1.0, label=text)
        _dress(axes, title, across if isinstance(across, str) else across[title], scales)
        if n % columns == 0:
            axes.set_ylabel(title_of(label))
    _legend(figure, grid)
    plt.close(figure)
    return figure


def bars(groups: Mapping[str, Mapping[str, np.ndarray]], label: str) -> Any:
    """Bars side by side in groups, from values [seeds], with two standard errors over seeds."""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(1.0 * len(groups) + 1.4, 3.6), layout="constrained")
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    width = 0.8 / len(names)
    for n, (name, colour) in enumerate(zip(names, _cycle(len(names)), strict=True)):
        places = [place for place, group in enumerate(groups.values()) if name in group]
        values = [np.asarray(group[name]) for group in groups.values() if name in group]
        axes.bar(
            [place + (n - (len(names) - 1) / 2) * width for place in places],
            [each.mean() for each in values],
            width,
            yerr=[_spread(each) for each in values],
            label=name,
            color=colour,
            error_kw={"linewidth": 0.8},
        )
    low = min(float(each.mean()) for group in groups.values() for each in group.values())
    axes.set_ylim(bottom=max(0.0, low - 0.1))
    axes.set_xticks(range(len(groups)), list(groups))
    axes.set_ylabel(title_of(label))
    axes.grid(axis="y", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    _legend(figure, np.array([[axes]]))
    plt.close(figure)
    return figure


def points(named: Mapping[str, tuple[np.ndarray, np.ndarray]], across: str, label: str) -> Any:
    """One point for each name from values ([seeds], [seeds]), with two standard errors over seeds.

    A line joins the points that no other beats in both: less across, and a better value of `label`.
    """
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    best = front([(x.mean(), y.mean()) for x, y in named.values()], label in HIGHER)
    line = {"linestyle": "--", "color": "#999999", "linewidth": 1.0, "drawstyle": "steps-post"}
    axes.plot(*zip(*best, strict=True), **line, zorder=0, label="Pareto front")
    for (name, (x, y)), colour in zip(named.items(), _cycle(len(named)), strict=True):
        spread = {key: _spread(each) for key, each in (("xerr", x), ("yerr", y))}
        axes.errorbar(x.mean(), y.mean(), **spread, fmt="o", color=colour, label=name)
    log = "".join(axis for n, axis in enumerate("xy") if wide([each[n] for each in named.values()]))
    _dress(axes, "", title_of(across), log)
    axes.set_ylabel(title_of(label))
    _legend(figure, np.array([[axes]]))
    plt.close(figure)
    return figure


def over(across: str, values: Sequence[Any], found: np.ndarray, label: str) -> Any:
    """A curve over the values of a parameter, from [seeds, values], with two standard errors over seeds."""
    if not all(isinstance(each, int | float) for each in values):
        return bars({str(each): {label: found[:, n]} for n, each in enumerate(values)}, label)
    at = np.asarray(values, float)
    log = "x" * wide([at])
    return curves({label: found}, label, steps=at, log=log, across=across, marked=True)


def heat_map(
    names: Sequence[str],
    values: Sequence[Sequence[Any]],
    cells: np.ndarray,
    label: str,
    higher: bool,
) -> Any:
    """The values of two parameters against each other, with a number in each cell; the best one is framed."""
    plt = pyplot()
    rows, columns = cells.shape
    size = 1.6 + 0.8 * max(columns, 4), 1.2 + 0.42 * max(rows, 4)
    figure, axes = plt.subplots(figsize=size, layout="constrained")
    finite = np.isfinite(cells)
    image = axes.imshow(
        np.where(finite, cells, np.nan), cmap="viridis" if higher else "viridis_r", aspect="auto"
    )
    for (row, column), value in np.ndenumerate(cells):
        red, green, blue, _ = image.cmap(image.norm(value)) if np.isfinite(value) else (1, 1, 1, 1)
        ink = "black" if 0.3 * red + 0.6 * green + 0.1 * blue > 0.5 else "white"
        text = f"{value:.3g}" if np.isfinite(value) else "diverged"
        axes.text(column, row, text, ha="center", va="center", fontsize="small", color=ink)
    if finite.any():
        best = np.nanargmax(cells) if higher else np.nanargmin(cells)
        row, column = np.unravel_index(best, cells.shape)
        frame = {"fill": False, "edgecolor": COLOURS[1], "linewidth": 2.5}
        axes.add_patch(plt.Rectangle((column - 0.5, row - 0.5), 1, 1, **frame))
    axes.set_yticks(range(rows), [_tick(each) for each in values[0]])
    axes.set_xticks(range(columns), [_tick(each) for each in values[1]])
    axes.set_ylabel(names[0])
    axes.set_xlabel(names[1])
    figure.colorbar(image, label=title_of(label))
    plt.close(figure)
    return figure


def _tick(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def front(found: list[tuple[float, float]], higher: bool) -> list[tuple[float, float]]:
    """The points, by x, with a better y than all points before them.

    >>> front([(1, 5), (2, 6), (3, 2), (3, 1), (4, float("nan"))], higher=False)
    [(1, 5), (3, 1)]
    """
    sign = -1 if higher else 1
    front: list[tuple[float, float]] = []
    finite = [each for each in found if np.isfinite(each).all()]
    for x, y in sorted(finite, key=lambda each: (each[0], sign * each[1])):
        if not front or sign * y < sign * front[-1][1]:
            front.append((x, y))
    return front


def _explodes(curves: Iterable[np.ndarray]) -> bool:
    """Whether a curve diverges, so that the others would be flat lines on a linear axis."""
    joined = np.concatenate([np.ravel(each) for each in curves])
    finite = joined[np.isfinite(joined)]
    return bool(finite.size and (finite > 0).all() and finite.max() > 1e6 * np.median(finite))


def wide(values: Sequence[np.ndarray]) -> bool:
    """Whether the values are positive and so far apart that a logarithmic axis shows them better."""
    joined = np.concatenate(values)
    return bool((joined > 0).all() and joined.max() > 10 * joined.min())


def _spread(values: np.ndarray) -> float:
    """Two standard errors over seeds."""
    return 2 * float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0


def save(figure: Any, path: Path) -> Path:
    """Writes the figure as PNG to `path`, and as SVG and PDF to the same folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    for vector in (".svg", ".pdf"):
        figure.savefig(path.with_suffix(vector))
    return path


def as_html(figure: Any, described: str) -> str:
    """The figure as an image inside a notebook."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{html.escape(described)}" src="data:image/png;base64,{data}">'


def _line(
    axes: Any, t: np.ndarray, values: np.ndarray, name: str, colour: str, marked: bool, log: bool
) -> None:
    with np.errstate(invalid="ignore", over="ignore"):  # a run that diverged
        mean = values.mean(axis=0)
        error = 2 * values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0
        low = mean**2 / (mean + error) if log else mean - error  # symmetric on the log axis
    marks = {"marker": "o", "markersize": 3.5} if marked else {}
    axes.plot(t, mean, label=name, color=colour, linewidth=1.6, **marks)
    if len(values) > 1:
        axes.fill_between(t, low, mean + error, color=colour, alpha=0.2, linewidth=0)


def _dress(axes: Any, title: str, across: str, log: str) -> None:
    axes.set_title(title, fontsize="medium")
    axes.set_xlabel(across)
    axes.set_xscale("log" if "x" in log else "linear")
    axes.set_yscale("log" if "y" in log else "linear")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _legend(figure: Any, grid: np.ndarray) -> None:
    """Adds a legend below all panels, with one entry for each name."""
    found: dict[str, Any] = {}
    for axes in grid.flat:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    columns = int(figure.get_figwidth() // (ENTRY + LETTER * max(map(len, map(_read, found)))))
    rows = -(-len(found) // max(1, min(columns, 4)))
    columns = -(-len(found) // rows)
    figure.legend(
        found.values(), found.keys(), loc="outside lower center", ncols=columns, frameon=False
    )


def _read(name: str) -> str:
    """The approximate visible text of a name that contains formulas."""
    return re.sub(r"\\[a-z]+|[${}_^\\]", "", name)


def _cycle(count: int) -> list[str]:
    return [COLOURS[n % len(COLOURS)] for n in range(count)]


def distinct(names: Sequence[str]) -> list[str]:
    """The names, with a number added to duplicates.

    >>> distinct(["fedogd", "ofediq", "ofediq"])
    ['fedogd', 'ofediq', 'ofediq 2']
    """
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return found
