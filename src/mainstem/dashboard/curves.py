"""The curves of a simulation's trace, thinned while its parts are read."""

from pathlib import Path
from typing import Any

import numpy as np

from mainstem.report.decimation import kept
from mainstem.run import trace

SHOWN = {"loss": "Loss", "correct": "Accuracy", "squared_error": "Squared error"}
OF_SAMPLES = ("correct", "squared_error")  # means over the clients with a sample, as in a run
LINES = ("of the step", "mean until then")
Line = list[tuple[np.ndarray, np.ndarray]]  # steps and values of each part


def last_step(file: Path) -> int:
    """The last step of a part of a trace, from its footer; 0 if it has no rows."""
    found = trace.pyarrow().parquet.read_metadata(file)
    if not found.num_rows:
        return 0
    column = found.row_group(found.num_row_groups - 1).column(found.schema.names.index("t"))
    return int(column.statistics.max)


class Curves:
    """Points of the means over the rollouts: of a run's seeds, or of a sweep's configurations, the finite ones."""

    def __init__(self, configurations: int = 1):
        self.files: list[str] = []  # that were added
        self._configurations = configurations
        self._lines: dict[str, tuple[Line, ...]] = {}
        self._sums: dict[
            str, tuple[np.ndarray, np.ndarray]
        ] = {}  # of the values, and of the clients

    def add(self, file: Path, most: int) -> None:
        """Adds the next part, with at most so many points in a line."""
        found = trace.File(file)
        if found.rows:
            read = trace.pyarrow().parquet.read_table(file, columns=["t"])
            t = read.column("t").to_numpy()[:: found.seeds]
            for name in SHOWN:
                if name in found:
                    values = found[name].astype(float)
                    there = name in OF_SAMPLES and "present" in found
                    with np.errstate(all="ignore"):  # of a run that diverges
                        self._add(name, t, values, found["present"] if there else None, most)
        self.files.append(file.name)

    def _add(
        self, name: str, t: np.ndarray, values: np.ndarray, there: np.ndarray | None, most: int
    ) -> None:
        count = np.ones_like(values) if there is None else there
        nothing = np.zeros((len(values), 1))
        before = self._sums.get(name, (nothing, nothing))
        totals, counts = (
            sums + np.cumsum(rows, axis=1)
            for sums, rows in zip(before, (values, count), strict=True)
        )
        self._sums[name] = totals[:, -1:].copy(), counts[:, -1:].copy()
        lines = self._lines.setdefault(name, tuple([] for _ in LINES))
        for line, (sums, of) in zip(lines, ((values, count), (totals, counts)), strict=True):
            curve = self._mean(sums / np.maximum(of, 1e-12))
            places = kept(curve, most)
            line.append((t[places], curve[places]))

    def _mean(self, rows: np.ndarray) -> np.ndarray:
        if self._configurations == 1:
            return np.asarray(rows.mean(axis=0))
        finite = np.isfinite(rows)
        count = finite.sum(axis=0)
        return np.asarray(np.where(finite, rows, 0.0).sum(axis=0) / np.where(count, count, np.nan))

    def charts(self) -> list[dict[str, Any]]:
        """The charts, as the page draws them."""
        return [self._chart(name) for name in SHOWN if name in self._lines]

    def _chart(self, name: str) -> dict[str, Any]:
        lines: list[dict[str, Any]] = []
        for n, (label, parts) in enumerate(zip(LINES, self._lines[name], strict=True)):
            t, values = (np.concatenate(each) for each in zip(*parts, strict=True))
            lines.append({"name": label, "colour": n, "x": t.tolist(), "y": values.tolist()})
        several = self._configurations > 1
        mean = f", mean of the finite ones of {self._configurations} configurations"
        title = SHOWN[name] + (mean if several else "")
        x, y = {"label": "step t"}, {"label": SHOWN[name].lower()}
        return {"id": name, "title": title, "x": x, "y": y, "lines": lines, "note": ""}
