"""Recorder of a run: collects the rows in memory or on disk, and restores the state after a crash."""

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from filelock import BaseFileLock

from mainstem.engines.simulate import hosts, shares
from mainstem.engines.simulate.devices import memory, placed
from mainstem.engines.simulate.stage import BAD_STEP, EACH_LOSS
from mainstem.engines.simulate.thinning import Thinning
from mainstem.engines.simulate.tracked import Tracked
from mainstem.errors import BrokenRun
from mainstem.run import folder as folders
from mainstem.run.trace import File, per_client
from mainstem.spec import unnamed

UNREAD = 2**-4  # the most rows that stay on an accelerator, as a share of its memory
UNFINISHED = "unfinished block of "  # before the name of a column, in a checkpoint
TRACKED = "tracked block of "  # the same of a block of tracked steps
PENDING = 2**15  # the most steps held in memory before they are written to a folder


class Recorder:
    """Collects rows; with a folder it writes them to disk, together with a checkpoint."""

    def __init__(
        self,
        path: Path | None,
        spec: Callable[[], Mapping[str, Any]],
        rollouts: list[int],
        interval: float,
        thinning: Thinning,
        tracked: Tracked | None = None,
    ):
        self.path = path
        self.rollouts = rollouts  # their seeds, or numbers
        self.interval = interval
        self.thinning = thinning
        self.tracked = tracked
        self.step = 0  # the last step recorded
        self.average: np.ndarray | None = None  # sum over the steps of the mean model
        # For each that diverged: the first step with a loss that is not finite, and whose losses are not.
        self.diverged: dict[int, tuple[int, list[int]]] = {}
        self._pending: list[dict[str, Any]] = []
        self._unread = 0  # bytes of rows that may still be on the devices
        self._parts = 0
        self._first = 1  # the first pending step
        self._saved = time.monotonic()
        self._state: dict[str, np.ndarray] | None = None
        self._lock: BaseFileLock | None = None
        try:
            if path is not None:
                hosts.by_first(lambda: self._claim(path, spec))
                self._reopen(path)
        except BaseException:
            self.close()
            raise

    def _claim(self, path: Path, spec: Callable[[], Mapping[str, Any]]) -> None:
        self._lock = _lock_folder(path, spec())

    def _reopen(self, path: Path) -> None:
        found = folders.resume_from(path)
        hosts.same(f"checkpoint in {path}", None if found is None else found[0])
        if not path.is_dir():
            raise BrokenRun(
                f"{path}: host {hosts.number()} does not see this folder of the first host"
            )
        if found is None:
            return
        self.step, self._parts, state = found
        self.average = state.pop("average", None)
        for rollout in self.rollouts:
            if f"diverged {rollout}" in state:
                step, *clients = state.pop(f"diverged {rollout}").tolist()
                self.diverged[rollout] = step, clients
        self.thinning.kept |= _taken(state, UNFINISHED)
        tracked = _taken(state, TRACKED)
        if self.tracked is not None:
            self.tracked.restore(tracked)
        self._state, self._first = state, self.step + 1

    def restored(self, state: Any) -> Any:
        """The state of the checkpoint from which the run is resumed; `state` is that before step 1."""
        if self._state is None:
            return state
        leaves, tree = jax.tree.flatten(state)
        stored = shares.joined(self._state)
        if len(stored) != len(leaves) or not all(
            n in stored and shares.fits(stored[n], leaf) for n, leaf in enumerate(leaves)
        ):
            raise BrokenRun(
                f"{self.path}: the checkpoint is of another program: start a new folder"
            )
        return jax.tree.unflatten(
            tree,
            [
                placed(shares.fitted(stored[n], leaf.shape), leaf.sharding)
                for n, leaf in enumerate(leaves)
            ],
        )

    def write(self, rows: dict[str, Any], step: int) -> None:
        """Records the rows up to `step`. Without a folder, columns of numbers stay where they were computed."""
        rows = dict(rows)
        self._watch(np.ravel(rows.pop(BAD_STEP)), rows.pop(EACH_LOSS))
        total = rows.pop("average", None)
        if total is not None:
            summed = self._stacked(np.asarray(total, np.float64))
            self.average = summed if self.average is None else self.average + summed
        if self.tracked is not None:
            self.tracked.add(rows, self.step + 1)
        steps = np.arange(self.step + 1, step + 1)
        rows = {name: self._kept(name, row, steps) for name, row in rows.items()}
        self._pending.append(self.thinning(rows, self.step + 1))
        self._unread += sum(row.nbytes for row in self._pending[-1].values())
        if self._unread > UNREAD * memory():
            self._pending, self._unread = jax.device_get(self._pending), 0
        self.step = step

    def _stacked(self, array: Any) -> Any:
        """The array with an axis for the rollouts."""
        return array if len(self.rollouts) > 1 else array[None]

    def _kept(self, name: str, rows: Any, steps: np.ndarray) -> Any:
        """Rows as they are kept: numbers of each client on the host, at the steps that the column has; others
        where they are."""
        column = per_client(name)
        if column is None:
            return rows
        kept = self._stacked(np.asarray(rows))[:, column.kept(steps)]
        return kept if len(self.rollouts) > 1 else kept[0]

    def _column(self, name: str) -> np.ndarray:
        """A column as it is stored: means over clients in float64, numbers of each client as computed."""
        dtype = np.float64 if per_client(name) is None else None
        parts = [self._stacked(np.asarray(rows[name], dtype)) for rows in self._pending]
        column = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        if dtype is not None and self.thinning.every > 1:
            column = column / self.thinning.every
        return np.require(column, requirements="W")

    def due(self, step: int) -> bool:
        """Whether the run should be saved after `step`."""
        if self.path is None:
            return False
        late = time.monotonic() - self._saved >= self.interval
        return bool(hosts.agreed(late or step - self._first >= PENDING))

    def save(self, state: Callable[[], Any], last: bool) -> None:
        """Writes what was recorded, and the `state()` of the run after it, to the folder, if there is one."""
        if self.path is None:
            return
        saved = shares.mine(jax.tree.leaves(state()))
        if not hosts.first():
            folders.checkpoint_share(self.path, self.step, hosts.number(), saved)
        hosts.agreed(None)  # all shares are stored
        if hosts.first():
            self._commit(self.path, saved)
        self._parts += 1
        self._pending, self._first, self._saved = [], self.step + 1, time.monotonic()
        self._unread = 0

    def _commit(self, path: Path, saved: dict[str, np.ndarray]) -> None:
        """Writes what was recorded, and the first host's share with all that the hosts have in common."""
        columns = {name: self._column(name) for name in self._pending[0]}
        every = self.thinning.every
        blocks = np.arange((self._first - 1) // every, self.step // every)  # those that ended
        folders.add_part(path, self._parts, columns, every * (blocks + 1), self.rollouts)
        saved |= {UNFINISHED + name: sums for name, sums in self.thinning.kept.items()}
        if self.tracked is not None:
            saved |= {TRACKED + name: sums for name, sums in self.tracked.unfinished.items()}
        for rollout, (step, clients) in self.diverged.items():
            saved[f"diverged {rollout}"] = np.array([step, *clients])
        if self.average is not None:
            saved["average"] = self.average
        folders.checkpoint(path, self.step, self._parts + 1, saved, hosts.count())

    def _watch(self, bad: np.ndarray, losses: Any) -> None:
        """Remembers where losses stop being finite: `bad` has the index of the first such step of each rollout,
        or -1, and `losses` the clients' losses at that step [rollouts, clients]."""
        for n in np.flatnonzero(bad >= 0):
            if self.rollouts[n] not in self.diverged:
                clients = np.flatnonzero(~np.isfinite(self._stacked(np.asarray(losses))[n]))
                self.diverged[self.rollouts[n]] = self.step + 1 + int(bad[n]), clients.tolist()

    def finish(
        self, model: dict[str, np.ndarray], summary: dict[str, Any]
    ) -> Mapping[str, np.ndarray]:
        """Finishes the run and returns its trace."""
        if self.path is None:
            return Columns(self._pending[0], self._column)
        path = self.path
        hosts.by_first(lambda: folders.finish(path, self._parts, model, summary))
        return File(path / "trace.parquet")

    def close(self) -> None:
        """Releases the folder's lock."""
        if self._lock is not None:
            self._lock.release()


class Columns(Mapping[str, np.ndarray]):
    """A trace in memory, whose columns come from the device when they are read."""

    def __init__(self, names: Iterable[str], read: Callable[[str], np.ndarray]):
        self._names, self._read = tuple(names), functools.cache(read)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._names:
            raise KeyError(name)
        return self._read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _taken(state: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Takes the arrays whose names begin so out of a state; returns them without it."""
    names = [name for name in state if name.startswith(prefix)]
    return {name.removeprefix(prefix): state.pop(name) for name in names}


def _lock_folder(path: Path, spec: Mapping[str, Any]) -> BaseFileLock:
    """Takes the folder's lock; refuses a spec with unnamed code, which a later run could not be compared with."""
    code = unnamed(spec)
    if code is not None:
        raise BrokenRun(
            f"{path}: {code} has no name that identifies it, so that the run could be resumed as another "
            "one: move it to a module, or leave out the folder"
        )
    return folders.claim(path, spec)
