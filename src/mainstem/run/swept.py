"""Result of a sweep: a run for each point of a grid, as a table with the best point, its neighbours and the
edges."""

import dataclasses
import functools
import html
from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from mainstem.errors import MainstemError
from mainstem.report import figures, tables
from mainstem.report.page import write_page
from mainstem.run.run import CURVES, Run

SHOWN = 10  # rows of the printed table


@dataclasses.dataclass(frozen=True)
class Sweep:
    """Runs of one stream, and the point of the grid that each belongs to."""

    axes: Mapping[
        str, tuple[Any, ...]
    ]  # the values of each parameter, in increasing order where they are numbers
    points: Sequence[Mapping[str, Any]]
    runs: Sequence[Run]
    y: str  # what is compared: a curve or a column of the runs

    @property
    def higher(self) -> bool:
        """Whether more of `y` is better."""
        return self.y in figures.HIGHER

    @functools.cached_property
    def finals(self) -> list[np.ndarray]:
        """The last value of `y` of each run [seeds]; NaN where it diverged."""
        return [np.atleast_2d(run.curve(self.y))[:, -1] for run in self.runs]

    @functools.cached_property
    def rows(self) -> list[dict[str, Any]]:
        """A dictionary for each point: the parameters, the mean of `y` over seeds with its standard error."""
        return [self._row(*each) for each in zip(self.points, self.runs, self.finals, strict=True)]

    def _row(self, point: Mapping[str, Any], run: Run, final: np.ndarray) -> dict[str, Any]:
        row: dict[str, Any] = {name: _plain(given) for name, given in point.items()}
        row[self.y] = float(np.mean(final))
        if len(final) > 1:
            row[f"{self.y}_error"] = float(np.std(final, ddof=1) / np.sqrt(len(final)))
        row["uplink_bits"] = float(np.mean(run.uplink_bits[..., -1]))
        return row | ({"diverged": run.diverged} if run.diverged else {})

    @functools.cached_property
    def order(self) -> list[int]:
        """The numbers of the points, the best first and those that diverged last."""
        means = np.array([row[self.y] for row in self.rows])
        return [int(n) for n in np.argsort(-means if self.higher else means, kind="stable")]

    @property
    def best(self) -> dict[str, Any]:
        """The row of the best point."""
        return self.rows[self.order[0]]

    @property
    def best_run(self) -> Run:
        """The run of the best point."""
        return self.runs[self.order[0]]

    def run(self, **point: Any) -> Run:
        """The run of a point: `sweep.run(step=0.1)`."""
        for known, run in zip(self.points, self.runs, strict=True):
            if dict(known) == point:
                return run
        raise MainstemError(
            f"sweep: there is no point {point}, the best one is {dict(self.points[self.order[0]])}"
        )

    @property
    def neighbours(self) -> list[dict[str, Any]]:
        """The rows of the points that differ from the best one by one step along one parameter."""
        best = self._place(self.points[self.order[0]])
        return [
            row
            for row, point in zip(self.rows, self.points, strict=True)
            if sum(abs(a - b) for a, b in zip(self._place(point), best, strict=True)) == 1
        ]

    @property
    def edges(self) -> list[str]:
        """The parameters of which the best point has the smallest or the largest number of the grid: the best
        value may lie outside."""
        best = self.points[self.order[0]]
        return [
            name
            for name, values in self.axes.items()
            if len(values) > 1 and _numbers(values) and best[name] in (values[0], values[-1])
        ]

    def _place(self, point: Mapping[str, Any]) -> list[int]:
        return [self.axes[name].index(given) for name, given in point.items()]

    @property
    def table(self) -> Any:
        """All points as a data frame of pandas, in the order of the grid."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    @property
    def varied(self) -> list[str]:
        """The parameters with two values or more."""
        return [name for name, values in self.axes.items() if len(values) > 1]

    def along(self) -> tuple[tuple[Any, ...], np.ndarray]:
        """The values of the first parameter, and the last values of `y` there [seeds, values]."""
        return self.axes[self.varied[0]], np.stack([self.finals[n] for n in self._slice(1)], axis=1)

    def grid(self) -> tuple[tuple[Any, ...], tuple[Any, ...], np.ndarray]:
        """The values of the first two parameters, and the means of `y` there, at the best values of the others."""
        names = self.varied[:2]
        first, second = (self.axes[name] for name in names)
        cells = np.full((len(first), len(second)), np.nan)
        for n in self._slice(2):
            point = self.points[n]
            place = first.index(point[names[0]]), second.index(point[names[1]])
            cells[place] = self.rows[n][self.y]
        return first, second, cells

    def _slice(self, free: int) -> list[int]:
        """The points with the best values of all parameters but the first `free`."""
        best, fixed = self.points[self.order[0]], self.varied[free:]
        return [
            n
            for n, point in enumerate(self.points)
            if all(point[name] == best[name] for name in fixed)
        ]

    @functools.cached_property
    def figure(self) -> Any:
        """A curve over one parameter; a heat map over the first two, at the best values of the others."""
        names = self.varied
        if not names:
            raise MainstemError("sweep: a figure needs a parameter with two values or more")
        if len(names) == 1:
            return figures.over(names[0], *self.along(), self.y)
        first, second, cells = self.grid()
        return figures.heat_map(names[:2], (first, second), cells, self.y, self.higher)

    def report(
        self, path: str | Path, *, regret: bool | None = None, title: str = "", command: str = ""
    ) -> Path:
        """Writes a page that shows the grid and the best runs, see `Run.report`, and its `command`."""
        from mainstem.run.reporting.content import of_sweep

        return write_page(path, of_sweep(self, regret, title, command))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.points)

    def __str__(self) -> str:
        shown = [self.rows[n] for n in self.order[:SHOWN]]
        lines = [tables.text(shown)]
        if len(self.rows) > SHOWN:
            lines.append(f"... and {len(self.rows) - SHOWN} more points")
        if self.edges:
            lines.append(edge_warning(self))
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """All points, best first, in a table that sorts, and the figure, in a notebook."""
        table = tables.as_html([self.rows[n] for n in self.order])
        warning = f"<p>{html.escape(edge_warning(self))}</p>" if self.edges else ""
        drawn = figures.as_html(self.figure, f"{self.y} over the grid") if self.varied else ""
        return table + warning + drawn


def edge_warning(sweep: Sweep) -> str:
    """The sentence that says where the best point lies on the edge of the grid."""
    each = ", ".join(f"{name} = {_plain(sweep.best[name])}" for name in sweep.edges)
    return f"the best point is on the edge of the grid ({each}): a wider grid may have a better one"


def first_curve(run: Run) -> str:
    """What is compared by default: the first of accuracy, MSE and loss that the run has."""
    return next(name for name in ("accuracy", "mse", "loss") if CURVES.get(name, name) in run.trace)


def _plain(given: Any) -> Any:
    """A number as it is, anything else in words."""
    if isinstance(given, bool) or not isinstance(given, Real):
        return given if isinstance(given, str) else repr(given)
    return given if isinstance(given, int) else float(given)


def _numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(each, Real) and not isinstance(each, bool) for each in values)
