"""The history of a run: its merges, returns and changes, each a line of the merge log."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mainstem.engines.federate.full_disk import Writer
from mainstem.engines.federate.hub.aggregator import Aggregator
from mainstem.engines.federate.hub.merge_log import MergeLog

RECENT = 20  # merges that the status shows


class History:
    """Writes to the merge log in a folder; without a folder it keeps the recent merges only."""

    def __init__(self, folder: Path | None, aggregator: Aggregator, revision: int):
        self.recent: deque[dict[str, Any]] = deque(maxlen=RECENT)
        self._aggregator = aggregator
        self._written = Writer("" if folder is None else str(folder / "merges.jsonl"))
        self._log = None
        if folder is not None:
            self._log = MergeLog(folder / "merges.jsonl", aggregator.version, revision)

    @property
    def failed(self) -> OSError | None:
        """Why the last write has failed."""
        return self._written.failed

    def merged(
        self,
        uploads: Sequence[tuple[str, int, int]],
        waited: float,
        deadline: bool,
        stopped: Mapping[str, list[str]],
    ) -> None:
        """Adds a merge: client, step and staleness of its uploads, seconds since the first of them, whether the
        deadline has passed, and the clients that the guard has stopped.
        """
        step, waited = self._aggregator.step, round(waited, 4)
        line = {"step": step, "waited": waited, "deadline": deadline, "uploads": uploads}
        self._add(line | dict(stopped))
        shown = {
            "uploads": len(uploads),
            "stopped": sorted({*stopped["clipped"], *stopped["held"]}),
        }
        version, now = self._aggregator.version, round(time.time(), 3)
        self.recent.append({"version": version, "time": now, **line, **shown})

    def went_back(self, merge: int | None, dropped: Sequence[tuple[str, int, int]]) -> None:
        """Adds that the run goes on from an earlier merge, without the uploads that waited."""
        self._add({"back": merge, "dropped": dropped})

    def changed(self, what: str) -> None:
        """Adds a change of the run document."""
        self._add({"changed": what, "document": self._aggregator.document.content})

    def retry(self) -> None:
        """Writes again what a full disk has not taken."""
        if self._log is not None and self.failed is not None:
            self._written(self._log.flush)

    def close(self) -> None:
        """Closes the log."""
        if self._log is not None:
            self._log.close()

    def _add(self, what: Mapping[str, Any]) -> None:
        log, aggregator = self._log, self._aggregator
        if log is not None:
            now = {"version": aggregator.version, "time": round(time.time(), 3)}
            line = {**now, "revision": aggregator.document.revision, **what}
            self._written(lambda: log.add(line))
