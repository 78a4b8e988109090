"""Tracking as event files, which `tensorboard --logdir FOLDER` shows."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mainstem.errors import MainstemError
from mainstem.tracking.tracker import Tracker, flat


class EventFiles(Tracker):
    """Writes event files, a folder for each run."""

    def __init__(self, folder: str | Path):
        self._folder = Path(folder)
        self._writer: Any = None
        self._step = 0
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.plugins.text import metadata
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError:
            text = "TensorBoard's files need tensorboard: pip install 'mainstem[tensorboard]'"
            raise MainstemError(text) from None
        self._events, self._summaries, self._text = event_pb2, summary_pb2, metadata
        self._open = EventFileWriter

    def begin(self, run: str, about: Mapping[str, Any]) -> None:
        """Opens a file in the run's folder, and writes the experiment as text."""
        self._folder.mkdir(parents=True, exist_ok=True)
        name = run.replace("/", "-").strip(". ") or "run"
        self._writer = self._open(str(self._folder / name))
        rows = "".join(f"| {key} | {value} |\n" for key, value in flat(about).items())
        shown = self._text.create_summary_metadata("experiment", "The experiment")
        summary = self._summaries.Summary()
        value = summary.value.add(tag="experiment", metadata=shown)
        value.tensor.dtype = 7  # DT_STRING
        value.tensor.string_val.append(f"| | |\n|---|---|\n{rows}".encode())
        self._add(0, summary)

    def resumed(self, step: int) -> None:
        """Adds a mark at which TensorBoard forgets the later steps of files that were written before."""
        start = self._events.SessionLog(status=self._events.SessionLog.START)
        self._writer.add_event(
            self._events.Event(wall_time=time.time(), step=step + 1, session_log=start)
        )

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Adds a step."""
        summary = self._summaries.Summary()
        for name, value in values.items():
            summary.value.add(tag=name, simple_value=value)
        self._step = step
        self._add(step, summary)
        self._writer.flush()

    def end(self, values: Mapping[str, float]) -> None:
        """Adds the last values, and closes the file."""
        if self._writer is None:
            return
        if values:
            self.log(self._step, {f"final/{name}": value for name, value in values.items()})
        self._writer.close()
        self._writer = None

    def _add(self, step: int, summary: Any) -> None:
        self._writer.add_event(
            self._events.Event(wall_time=time.time(), step=step, summary=summary)
        )


def tensorboard(folder: str | Path) -> Tracker:
    """Event files in a folder, for `tensorboard --logdir FOLDER`."""
    return EventFiles(folder)
