"""Comparison of runs: a table that prints, sorts and exports, and a figure."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mainstem.errors import MainstemError
from mainstem.measure.regret import default_kind
from mainstem.report import figures, tables
from mainstem.report.page import write_page
from mainstem.run import trace as traces
from mainstem.run.drawing import overlaid
from mainstem.run.labels import labels
from mainstem.run.run import CURVES, Run
from mainstem.spec import difference, same
from mainstem.theory.applied import beside, in_one_unit
from mainstem.theory.beside import Beside


def compare(
    runs: Run | Sequence[Run] | Mapping[str, Run],
    y: str | None = None,
    *,
    x: str | None = None,
    bound: bool = False,
) -> "Comparison":
    """Runs on the same stream side by side: a table, and a figure of `y` over the steps or over `x`.

    Runs in a list are labelled by the parameters that differ; a mapping gives their labels.

    `y` and `x` are curves or columns of the runs (accuracy, loss, uplink_bits, ...), or regret; by default `y` is
    the first of accuracy, mse and loss that all runs have. With `bound`, `y` is the quantity that each run's
    theorem bounds, and the bound is dashed; in means over clients if the papers use different units. Runs on
    other data are refused; runs of other lengths have a column for it.

    >>> import mainstem as ms
    >>> problem, stream = ms.problems.softmax(features=64, classes=10), ms.streams.digits(clients=20)
    >>> runs = [ms.simulate(ms.fedogd(step), problem, stream, steps=30) for step in (0.1, 0.5)]
    >>> print(compare(runs))  # doctest: +ELLIPSIS
    algorithm        accuracy  uplink bits  uplink saving
    fedogd step=0.1    ...           0.0 %
    fedogd step=0.5    ...           0.0 %
    """
    if isinstance(runs, Run):
        runs = [runs]
    named = runs if isinstance(runs, Mapping) else None
    runs = list(runs.values() if isinstance(runs, Mapping) else runs)
    if not runs:
        raise MainstemError("compare: wants at least one run")
    for n, run in enumerate(runs[1:], 2):
        if not same(run.spec["stream"], runs[0].spec["stream"]):
            found = difference(run.spec["stream"], runs[0].spec["stream"])
            raise MainstemError(
                f"compare: run {n} saw other data than run 1 ({found}): compare runs on the same stream"
            )
    chosen = "regret" if bound else _column(y or _first(runs))
    for name in (chosen, *([] if x is None else [_column(x)])):
        if traces.per_client(name) is not None:
            raise MainstemError(
                f"compare: {name} has a number for each client: see it with run.plot({name!r}) or run.to_pandas()"
            )
        if name != "regret":
            for run in runs:
                run.curve(name)  # refuses names that it does not have
    given = named or dict(zip(labels([run.spec for run in runs]), runs, strict=True))
    return Comparison(given, next(iter(given)), chosen, None if x is None else _column(x), bound)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Several runs, the quantity `y` in which they are compared, and the one on the horizontal axis."""

    runs: Mapping[str, Run]  # by label
    baseline: str  # the run from which the others' differences are taken
    y: str
    x: str | None = None  # None: the steps
    bound: bool = False  # whether the theorems' bounds are beside the measured regrets

    @functools.cached_property
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each run: means over seeds, with their standard errors and the difference from the
        baseline, seed by seed, if there are several seeds."""
        shown = dict.fromkeys([self.y, *([self.x] if self.x else []), "uplink_bits"])
        final = {name: self._final(name) for name in shown}
        lengths = {run.summary.steps for run in self.runs.values()}
        rows = []
        for label, run in self.runs.items():
            row: dict[str, Any] = {"algorithm": label}
            row |= {"steps": run.summary.steps} if len(lengths) > 1 else {}
            for name, values in final.items():
                row |= self._cells(name, label, values)
            row["uplink_saving"] = run.uplink_saving
            rows.append(row | ({"diverged": run.diverged} if run.diverged else {}))
        return rows

    def _cells(self, name: str, label: str, final: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """The entries of one quantity, from the last values of all runs."""
        title, values = self._title(name), final[label]
        found = {title: float(np.mean(values))}
        if self.bound and name == self.y:
            found["bound"] = float(np.ravel(self._beside[label].bound.value)[-1])
        if name != self.y or len(values) == 1:
            return found
        found[f"{title}_error"] = _standard_error(values)
        alike = {(each.summary.steps, tuple(each.summary.seeds)) for each in self.runs.values()}
        if len(alike) == 1 and len(self.runs) > 1:
            away = values - final[self.baseline]
            found |= {"difference": float(np.mean(away)), "difference_error": _standard_error(away)}
        return found

    @functools.cached_property
    def _beside(self) -> dict[str, Beside]:
        """The measured regrets with the bounds of their theorems, in one unit."""
        found = {label: beside(run) for label, run in self.runs.items()}
        return in_one_unit(found, {n: run.summary.clients for n, run in self.runs.items()})

    @functools.cached_property
    def kind(self) -> str:
        """The kind of regret that all runs have."""
        kinds = {
            default_kind(
                run.trace, run.summary.shared, run.problem is not None and run.problem.personal
            )
            for run in self.runs.values()
        }
        if len(kinds) == 1:
            return kinds.pop()
        if kinds == {"collective", "global"}:  # equal where all clients have one model
            return "collective"
        raise MainstemError(
            f"compare: the runs have regrets of several kinds: {', '.join(sorted(kinds))}"
        )

    def _title(self, name: str) -> str:
        """The name of a column: that of a regret has its kind."""
        return f"{self.kind}_regret" if name == "regret" and not self.bound else name

    @functools.cached_property
    def _regrets(self) -> dict[str, Any]:
        return {n: run.regret("curve", kind=self.kind) for n, run in self.runs.items()}

    def _curves(self, name: str) -> dict[str, np.ndarray]:
        """The curve of each run [seeds, points]."""
        if name == "regret" and self.bound:
            return {n: each.measured for n, each in self._beside.items()}
        if name == "regret":
            return {n: np.atleast_2d(each.values) for n, each in self._regrets.items()}
        return {n: np.atleast_2d(run.curve(name)) for n, run in self.runs.items()}

    def _final(self, name: str) -> dict[str, np.ndarray]:
        """The last value of each run [seeds]."""
        return {n: curve[:, -1] for n, curve in self._curves(name).items()}

    @functools.cached_property
    def figure(self) -> Any:
        """The curves over the steps with their spread over seeds; with `x`, a point for each run."""
        if self.x is not None:
            across, up = self._final(self.x), self._final(self.y)
            points = {label: (across[label], up[label]) for label in self.runs}
            return figures.points(points, self._title(self.x), self._title(self.y))
        if self.bound:
            return overlaid(self._beside)
        steps = {label: run.t for label, run in self.runs.items()}
        if self.y == "regret":
            steps = {label: each.steps for label, each in self._regrets.items()}
        return figures.curves(self._curves(self.y), self._title(self.y), steps=steps)

    def report(
        self, path: str | Path, *, regret: bool | None = None, title: str = "", command: str = ""
    ) -> Path:
        """Writes a page that shows the runs side by side, see `Run.report`, and the `command` that made them."""
        from mainstem.run.reporting.content import of_runs

        return write_page(path, of_runs(self, regret, title, command))

    def sorted(self, by: str | None = None, descending: bool = False) -> "Comparison":
        """The comparison with its runs in the order of a column (default: `y`)."""
        name = self._title(_column(by)) if by else self._title(self.y)
        if any(name not in row for row in self.rows):
            known = ", ".join(tables.columns(self.rows))
            raise MainstemError(f"compare: there is no column {name}, only {known}")
        order = sorted(self.rows, key=lambda row: row[name], reverse=descending)
        runs = {row["algorithm"]: self.runs[row["algorithm"]] for row in order}
        return dataclasses.replace(self, runs=runs)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.runs)

    def __str__(self) -> str:
        return tables.text(self.rows)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table, which sorts, and the figure, in a notebook."""
        names = ", ".join(self.runs)
        described = f"{figures.title_of(self._title(self.y))} of {names}"
        return tables.as_html(self.rows) + figures.as_html(self.figure, described)

    def to_pandas(self) -> Any:
        """The table as a data frame."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    def to_latex(self, path: str | Path | None = None) -> str:
        """The table in LaTeX, with the lines of booktabs; also written to `path`, if given."""
        return _written(tables.latex(self.rows), path)

    def to_csv(self, path: str | Path | None = None) -> str:
        """The table as CSV, with all digits; also written to `path`, if given."""
        return _written(tables.as_csv(self.rows), path)


def _first(runs: list[Run]) -> str:
    """The first curve that all runs have."""
    return next(
        name
        for name in ("accuracy", "mse", "loss")
        if all(CURVES.get(name, name) in run.trace for run in runs)
    )


def _column(name: str) -> str:
    """The name of a column, as in code: `uplink bits` is `uplink_bits`."""
    return name.replace(" ", "_")


def _standard_error(values: np.ndarray) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def _written(content: str, path: str | Path | None) -> str:
    if path is not None:
        Path(path).write_text(content + ("" if content.endswith("\n") else "\n"))
    return content
