"""Simulations in a folder, also unfinished ones, as the live page shows them: their curves so far."""

import asyncio
import json
import time
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mainstem.dashboard.source import Row
from mainstem.errors import BadData, MainstemError
from mainstem.report.decimation import kept
from mainstem.run import trace

SECOND = 1.0
DEEP = 3  # levels of folders that are searched: sweeps are folders of runs
MOST = 200  # runs that are shown, the latest
POINTS = 1000  # of a curve
UNREADABLE = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    BadData,
)  # a file that is being written or removed
SHOWN = {"loss": "Loss", "correct": "Accuracy", "squared_error": "Squared error"}


class Curves(NamedTuple):
    """Columns of a trace, the mean over seeds."""

    t: np.ndarray
    columns: dict[str, np.ndarray]


class Simulation:
    """The folder of one run. Parts of its trace are read once."""

    def __init__(self, path: Path):
        self._path = path
        self._parts: dict[str, Curves] = {}
        with (path / "spec.toml").open("rb") as file:
            self.spec = tomllib.load(file)
        self.finished = False
        self.written = 0.0  # seconds since 1970
        self.revision = 0  # how often something new was read

    def refresh(self) -> None:
        """Reads what was written since the last look."""
        if self.finished:
            return
        self.finished = (self._path / "run.json").exists()
        files = [self._path / "trace.parquet"] if self.finished else self._written_parts()
        names = {file.name for file in files}
        self.revision += names != set(self._parts)
        self._parts = {
            file.name: self._parts.get(file.name) or _curves(file) for file in sorted(files)
        }
        self.written = max(file.stat().st_mtime for file in [*files, self._path / "spec.toml"])

    def _written_parts(self) -> list[Path]:
        return [file for file in (self._path / "trace").glob("*.parquet") if file.stem.isdigit()]

    @property
    def state(self) -> str:
        """Whether it has ended; one that was killed is still in progress, and can be resumed."""
        return "finished" if self.finished else "in progress"

    @property
    def step(self) -> int:
        """The last step that was written."""
        return max((int(part.t[-1]) for part in self._parts.values()), default=0)

    @property
    def steps(self) -> int:
        """The steps that it will have."""
        return int(self.spec["simulate"]["steps"])

    def charts(self) -> list[dict[str, Any]]:
        """Its curves so far."""
        parts = [self._parts[name] for name in sorted(self._parts)]
        if not parts:
            return []
        t = np.concatenate([part.t for part in parts])
        found = []
        for name, title in SHOWN.items():
            if name in parts[0].columns:
                values = np.concatenate([part.columns[name] for part in parts])
                found.append(_chart(name, title, t, values))
        return found


def _curves(file: Path) -> Curves:
    found = trace.File(file)
    columns = {name: found[name].mean(axis=0) for name in SHOWN if name in found}
    t = trace.pyarrow().parquet.read_table(file, columns=["t"]).column("t").to_numpy()
    return Curves(t[:: found.seeds], columns)


def _chart(name: str, title: str, t: np.ndarray, values: np.ndarray) -> dict[str, Any]:
    means = np.cumsum(values) / np.arange(1, len(values) + 1)
    lines = [
        {"name": label, "colour": n, "x": t[places].tolist(), "y": curve[places].tolist()}
        for n, (label, curve) in enumerate(
            {"of the step": values, "mean until then": means}.items()
        )
        if len(places := kept(curve, POINTS))
    ]
    x, y = {"label": "step t"}, {"label": title.lower()}
    return {"id": name, "title": title, "x": x, "y": y, "lines": lines, "note": ""}


class Folder:
    """Follows the simulations below a folder."""

    def __init__(self, path: Path):
        if not path.is_dir():
            raise MainstemError(f"{path}: there is no such folder")
        self.about = f"folder {path}"
        self.problem = ""
        self._path = path
        self._runs: dict[str, Simulation] = {}

    async def follow(self, changed: Callable[[], None]) -> None:
        """Looks at the folder every second, and calls `changed` after each look."""
        while True:
            await asyncio.to_thread(self._refresh)
            changed()
            await asyncio.sleep(SECOND)

    def _refresh(self) -> None:
        try:
            found = self._found()
            self.problem = ""
        except OSError as error:
            self.problem = f"{self._path}: cannot be read: {error.strerror}"
            return
        runs = {}
        for path in found:
            name = str(path.relative_to(self._path)) if path != self._path else path.absolute().name
            try:
                run = self._runs.get(name) or Simulation(path)
                run.refresh()
                runs[name] = run
            except UNREADABLE:
                continue  # it is looked at again
        self._runs = runs

    def _found(self) -> list[Path]:
        """The folders of the latest runs."""
        patterns = ["/".join(["*"] * depth + ["spec.toml"]) for depth in range(DEEP + 1)]
        files = [file for pattern in patterns for file in self._path.glob(pattern)]
        latest = sorted(files, key=lambda file: file.stat().st_mtime, reverse=True)[:MOST]
        return [file.parent for file in latest]

    # --- what the page shows -----------------------------------------------------------------------

    def rows(self) -> list[Row]:
        """The runs, each in a line, the latest first."""
        return [
            {
                "run": name,
                "state": run.state,
                "needs_somebody": False,
                "at": f"step {run.step:,} of {run.steps:,}",
                "sites": str(run.spec["simulate"].get("clients", "")),
            }
            for name, run in self._runs.items()
        ]

    def whole(self, name: str, sites: Sequence[str]) -> dict[str, Any] | None:
        """Everything of a run; None if it is not there."""
        run = self._runs.get(name)
        if run is None:
            return None
        facts = {
            "state": run.state,
            "step": f"{run.step:,} of {run.steps:,}",
            "last written": f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(run.written))}",
            "algorithm": json.dumps(run.spec.get("algorithm", {})),
        }
        return {
            "revision": run.revision,
            "charts": run.charts(),
            "facts": [[key, value] for key, value in facts.items()],
            "alarms": [],
            "orders": [],
        }

    def latest(self, name: str, sites: Sequence[str], seen: float) -> dict[str, Any] | None:
        """Everything of a run, if it has changed."""
        run = self._runs.get(name)
        return self.whole(name, sites) if run is not None and run.revision > seen else None

    async def order(self, run: str, name: str, of: str) -> None:
        """Refuses: a simulation takes no orders."""
        raise MainstemError("a simulation takes no orders: end its process")
