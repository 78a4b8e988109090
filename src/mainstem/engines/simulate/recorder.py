"""Recorder of a run: collects the rows in memory or on disk, and restores the state after a crash."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from filelock import BaseFileLock

from mainstem.engines.simulate.stage import EACH_LOSS
from mainstem.errors import BrokenRun
from mainstem.run import folder as folders
from mainstem.run.trace import File, per_client
from mainstem.spec import unnamed

PENDING = 2**15  # the most steps held in memory before they are written


class Recorder:
    """Collects rows; with a folder it writes them to disk, together with a checkpoint."""

    def __init__(
        self, path: Path | None, spec: Mapping[str, Any], seeds: list[int], interval: float
    ):
        self.path = path
        self.seeds = seeds
        self.interval = interval
        self.step = 0  # the last step recorded
        self.average: np.ndarray | None = None  # sum over the steps of the mean model
        # For each seed that diverged: the first step with a loss that is not finite, and whose losses are not.
        self.diverged: dict[int, tuple[int, list[int]]] = {}
        self._pending: list[dict[str, np.ndarray]] = []
        self._parts = 0
        self._first = 1  # the first pending step
        self._saved = time.monotonic()
        self._state: dict[str, np.ndarray] | None = None
        self._lock = None if path is None else _lock_folder(path, spec)
        try:
            if path is not None:
                self._reopen(path)
        except BaseException:
            self.close()
            raise

    def _reopen(self, path: Path) -> None:
        found = folders.resume_from(path)
        if found is None:
            return
        self.step, self._parts, state = found
        self.average = state.pop("average", None)
        for seed in self.seeds:
            if f"diverged {seed}" in state:
                step, *clients = state.pop(f"diverged {seed}").tolist()
                self.diverged[seed] = step, clients
        self._state, self._first = state, self.step + 1

    def restored(self, state: Any) -> Any:
        """`state` itself at the start of a run; the state of the checkpoint when the run is resumed."""
        if self._state is None:
            return state
        leaves, tree = jax.tree.flatten(state)
        stored = [self._state.get(str(n)) for n in range(len(leaves))]
        for old, new in zip(stored, leaves, strict=True):
            if old is None or old.shape != new.shape or old.dtype != new.dtype:
                raise BrokenRun(
                    f"{self.path}: the checkpoint is of another program: start a new folder"
                )
        return jax.tree.unflatten(
            tree, [jax.device_put(x, y.sharding) for x, y in zip(stored, leaves, strict=True)]
        )

    def write(
        self, rows: dict[str, np.ndarray], step: int, state: Callable[[], Any], last: bool
    ) -> None:
        """Records the rows up to `step`, after which the run is in `state()`."""
        many = len(self.seeds) > 1
        rows = rows if many else {name: row[None] for name, row in rows.items()}
        steps = np.arange(self.step + 1, step + 1)
        rows = {name: _stored(name, row, steps) for name, row in rows.items()}
        self._watch(rows["loss"], rows.pop(EACH_LOSS))
        total = rows.pop("average", None)
        if total is not None:
            self.average = total if self.average is None else self.average + total
        self._pending.append(rows)
        self.step = step
        if self.path is None:
            return
        late = time.monotonic() - self._saved >= self.interval
        if last or late or self.step - self._first >= PENDING:
            self._flush(state(), last)

    def _watch(self, means: np.ndarray, losses: np.ndarray) -> None:
        """Remembers where losses stop being finite: `means` has the steps' mean losses [seeds, steps], `losses`
        the clients' losses [seeds, clients] at the first step where the mean is not finite."""
        for seed, mean, each in zip(self.seeds, means, losses, strict=True):
            if seed not in self.diverged and not np.isfinite(each).all():
                step = self.step + 1 + int(np.argmin(np.isfinite(mean)))
                self.diverged[seed] = step, np.flatnonzero(~np.isfinite(each)).tolist()

    def _flush(self, state: Any, last: bool) -> None:
        assert self.path is not None
        folders.add_part(self.path, self._parts, self._columns(), self._first, self.seeds)
        self._parts += 1
        leaves = jax.tree.leaves(jax.device_get(state))
        saved = {str(n): np.asarray(leaf) for n, leaf in enumerate(leaves)}
        for seed, (step, clients) in self.diverged.items():
            saved[f"diverged {seed}"] = np.array([step, *clients])
        if self.average is not None:
            saved["average"] = self.average
        folders.checkpoint(self.path, self.step, self._parts, saved)
        self._pending, self._first, self._saved = [], self.step + 1, time.monotonic()

    def _columns(self) -> dict[str, np.ndarray]:
        names = self._pending[0]
        return {
            name: np.concatenate([row[name] for row in self._pending], axis=1) for name in names
        }

    def finish(
        self, model: dict[str, np.ndarray], summary: dict[str, Any]
    ) -> Mapping[str, np.ndarray]:
        """Finishes the run and returns its trace."""
        if self.path is None:
            return self._columns()
        folders.finish(self.path, self._parts, model, summary)
        return File(self.path / "trace.parquet")

    def close(self) -> None:
        """Releases the folder's lock."""
        if self._lock is not None:
            self._lock.release()


def _stored(name: str, rows: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Rows [seeds, steps, ...] as they are stored: sums over clients in float64, numbers of each client as they
    were computed, at the steps that the column has."""
    column = per_client(name)
    return np.asarray(rows, np.float64) if column is None else rows[:, column.kept(steps)]


def _lock_folder(path: Path, spec: Mapping[str, Any]) -> BaseFileLock:
    """Takes the folder's lock; refuses a spec with unnamed code, which a later run could not be compared with."""
    code = unnamed(spec)
    if code is not None:
        raise BrokenRun(
            f"{path}: {code} has no name that identifies it, so that the run could be resumed as another "
            "one: move it to a module, or leave out the folder"
        )
    return folders.claim(path, spec)
