"""Simulations in a folder, also unfinished ones, as the live page shows them: their curves so far."""

import asyncio
import contextlib
import json
import math
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mainstem.dashboard.curves import Curves, last_step
from mainstem.dashboard.source import Row
from mainstem.errors import BadData, MainstemError, first_line

SECOND = 1.0
DEEP = 3  # levels of folders that are searched: sweeps are folders of runs
MOST = 200  # runs that are shown, the latest
POINTS = 1000  # of a curve; of an unfinished run, a quarter of them in each part of the trace
IDLE = 60.0  # seconds for which the curves of a run are kept after a page has asked for them
LARGEST = 2**26  # bytes of a table: of a sweep, or with the names of many clients
LONGEST = 200  # letters of why a run cannot be read
CANNOT = "cannot be read"
Stamp = tuple[int, int, int] | None


class Simulation:
    """The folder of one run, until its spec or its end is written anew. Parts of its trace are read once."""

    def __init__(self, path: Path, stamps: tuple[Stamp, Stamp], before: "Simulation | None"):
        self._path = path
        self.stamps = stamps  # of its spec, and of its end
        self.finished = stamps[1] is not None
        self.asked: float = (
            before.asked if before else -math.inf
        )  # when a page has asked for its curves
        self.revision: int = (
            before.revision + 1 if before else 0
        )  # how often something new was read
        self.problem = ""  # why it cannot be read
        self.spec: Mapping[str, Any] | None = None
        self.steps = 0  # that it will have
        self.configurations = 1  # several in a sweep
        self.clients = ""
        self.written = 0.0  # seconds since 1970
        self.charts: list[dict[str, Any]] | None = None  # None until a page asks for them
        self._last: dict[str, int] = {}  # the last step of each part
        self._curves: Curves | None = None
        self._missing = False  # whether a file was missing at the last look

    def refresh(self) -> None:
        """Reads what was written since the last look. What cannot be read is a fault of this run alone."""
        if self.spec is None and self.problem:
            return  # until it is written anew
        problem, last, charts = self.problem, self._last, self.charts
        missing, self._missing = self._missing, False
        try:
            self._read()
            self.problem = ""
        except FileNotFoundError as error:  # at first: it is being finished or removed
            self._missing, self.problem = True, _why(error) if missing else self.problem
        except Exception as error:  # in a folder may be anything
            self.problem = _why(error)
        new = (self.problem, self._last) != (problem, last) or self.charts is not charts
        self.revision += new  # at last: who sees it sees the rest

    def _read(self) -> None:
        if self.spec is None:
            self._read_spec()
        files = [self._path / "trace.parquet"] if self.finished else self._written_parts()
        if {file.name for file in files} != {*self._last} or not self.written:
            self._last = {
                file.name: self._last[file.name] if file.name in self._last else last_step(file)
                for file in files
            }
            self.written = max(file.stat().st_mtime for file in [*files, self._path / "spec.toml"])
        self._draw(files)

    def _read_spec(self) -> None:
        spec = tomllib.loads(_small(self._path / "spec.toml").decode())
        steps, listed = spec["simulate"]["steps"], spec.get("algorithm", [])
        if not isinstance(steps, int):
            raise BadData(f"spec.toml: simulate.steps must be a number, got {steps!r:.40}")
        self.steps = steps
        self.configurations = len(listed) if isinstance(listed, list) and listed else 1
        self.clients = self._known_clients(spec)
        self.spec = spec

    def _known_clients(self, spec: Mapping[str, Any]) -> str:
        """The number of clients, if a finished run or its stream states it."""
        found: Any = None
        with contextlib.suppress(Exception):
            found = spec["stream"].get("clients")
            if self.finished:
                summary = json.loads(_small(self._path / "run.json"))
                found = (summary | summary.get("configurations", [{}])[0])["clients"]
        return f"{found:,}" if isinstance(found, int) else ""

    def _written_parts(self) -> list[Path]:
        found = (self._path / "trace").glob("*.parquet")
        return sorted(file for file in found if file.stem.isdigit() and file.is_file())

    def _draw(self, files: list[Path]) -> None:
        """Reads the curves, for as long as a page asks for them."""
        if time.monotonic() - self.asked > IDLE:
            self._curves = self.charts = None
            return
        names, most = [file.name for file in files], POINTS if self.finished else POINTS // 4
        curves = self._curves
        if curves is None or curves.files != names[: len(curves.files)]:
            curves = Curves(self.configurations)
        elif curves.files == names:
            return
        self._curves = None  # if a part cannot be read, all are read again
        for file in files[len(curves.files) :]:
            curves.add(file, most)
        self._curves, self.charts = curves, curves.charts()

    @property
    def state(self) -> str:
        """Whether it has ended; one that was killed is still in progress, and can be resumed."""
        return CANNOT if self.problem else "finished" if self.finished else "in progress"

    @property
    def at(self) -> str:
        """How far it is."""
        if self.problem:
            return ""
        step = f"step {max(self._last.values(), default=0):,} of {self.steps:,}"
        return step + (f", {self.configurations} configurations" if self.configurations > 1 else "")

    @property
    def facts(self) -> dict[str, str]:
        """What is known of it."""
        if self.problem or self.spec is None:
            return {"state": CANNOT, "why": self.problem}
        listed = self.spec.get("algorithm", {})
        several = self.configurations > 1
        return {
            "state": self.state,
            "step": self.at.removeprefix("step "),
            "clients": self.clients or "unknown",
            "last written": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.written)),
            "first algorithm" if several else "algorithm": json.dumps(
                listed[0] if several else listed, default=str
            ),
        }


def _why(error: Exception) -> str:
    return first_line(error, named=not isinstance(error, BadData), most=LONGEST)


def _small(file: Path) -> bytes:
    """The content of a file of tables."""
    with file.open("rb") as opened:
        found = opened.read(LARGEST + 1)
    if len(found) > LARGEST:
        raise BadData(f"{file.name}: must have {LARGEST // 2**20} MB at most")
    return found


def _stamp(file: Path) -> Stamp:
    """What is another one when a file is written anew; None if there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_size) if file.is_file() else None


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
        for path, stamps in found:
            name = str(path.relative_to(self._path)) if path != self._path else path.absolute().name
            run = self._runs.get(name)
            if run is None or run.stamps != stamps:
                run = Simulation(path, stamps, run)
            run.refresh()
            runs[name] = run
        self._runs = runs

    def _found(self) -> list[tuple[Path, tuple[Stamp, Stamp]]]:
        """The folders of the latest runs, with the stamps of their specs and ends."""
        specs = {file.parent: stamp for file in self._specs() if (stamp := _stamp(file))}
        latest = sorted(specs, key=lambda path: specs[path][1], reverse=True)[:MOST]
        return [(path, (specs[path], _stamp(path / "run.json"))) for path in latest]

    def _specs(self) -> Iterator[Path]:
        for depth in range(DEEP + 1):
            yield from self._path.glob("/".join(["*"] * depth + ["spec.toml"]))

    # --- what the page shows -----------------------------------------------------------------------

    def rows(self) -> list[Row]:
        """The runs, each in a line, the latest first."""
        return [
            {
                "run": name,
                "state": run.state,
                "needs_somebody": False,
                "at": run.at,
                "sites": run.clients,
            }
            for name, run in self._runs.items()
        ]

    def whole(self, name: str, sites: Sequence[str]) -> dict[str, Any] | None:
        """Everything of a run; None if it is not there, or its curves were not read yet."""
        run = self._runs.get(name)
        if run is None:
            return None
        run.asked = time.monotonic()
        revision, charts, problem = (
            run.revision,
            run.charts,
            run.problem,
        )  # once: a thread sets them
        if charts is None and not problem:
            return None
        return {
            "revision": revision,
            "charts": [] if problem else charts,
            "facts": [[key, value] for key, value in run.facts.items()],
            "alarms": [],
            "orders": [],
        }

    def latest(self, name: str, sites: Sequence[str], seen: float) -> dict[str, Any] | None:
        """Everything of a run, if it has changed."""
        run = self._runs.get(name)
        if run is None:
            return None
        run.asked = time.monotonic()
        return self.whole(name, sites) if run.revision > seen else None

    async def order(self, run: str, name: str, of: str) -> None:
        """Refuses: a simulation takes no orders."""
        raise MainstemError("a simulation takes no orders: end its process")
