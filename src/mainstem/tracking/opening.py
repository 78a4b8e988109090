"""Trackers by their names, as on the command line, and the tracking of one run."""

import contextlib
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mainstem import check
from mainstem.tracking.mlflow import mlflow
from mainstem.tracking.tensorboard import tensorboard
from mainstem.tracking.text_files import csv, json_lines
from mainstem.tracking.tracker import Tracker

log = logging.getLogger("mainstem")
WAITING = 1000  # points that may wait for a tracker that has failed, the latest
KINDS: dict[str, Callable[[str], Tracker]] = {
    "csv": csv,
    "jsonl": json_lines,
    "tensorboard": tensorboard,
    "mlflow": lambda uri: mlflow(uri or None),
}
Asked = Tracker | str | Sequence["Tracker | str"] | None


def tracker(asked: Tracker | str) -> Tracker:
    """A tracker, also by KIND:PLACE, such as csv:losses.csv, jsonl:run.jsonl, tensorboard:logs, mlflow:http://host:5000.

    >>> tracker("paper:losses")
    Traceback (most recent call last):
    ...
    mainstem.errors.BadParameter: track: kind must be one of csv, jsonl, mlflow, tensorboard, got 'paper'
    """
    if isinstance(asked, Tracker):
        return asked
    kind, _, place = asked.partition(":")
    if kind not in KINDS:
        raise check.refuse("track", "kind", f"be one of {', '.join(sorted(KINDS))}", kind)
    if not place and kind != "mlflow":
        raise check.refuse("track", kind, f"name a place, such as {kind}:logs", asked)
    return KINDS[kind](place)


def trackers(asked: Asked, pause: float | None = None) -> "Tracking":
    """The trackers that were asked for, as one; `pause`: as in `Tracking`."""
    if asked is None:
        return Tracking([])
    listed = [asked] if isinstance(asked, Tracker | str) else asked
    return Tracking([tracker(each) for each in listed], pause)


class AtWork:
    """A tracker of a run, with the points that it has not received."""

    def __init__(self, tracker: Tracker):
        self.tracker = tracker
        self.points: deque[tuple[int, Mapping[str, float]]] = deque(maxlen=WAITING)
        self.again = -math.inf  # when it is tried again, after a failure

    @property
    def name(self) -> str:
        """What the log calls it."""
        return type(self.tracker).__name__

    def log(self) -> None:
        """Gives it the points in turn."""
        while self.points:
            self.tracker.log(*self.points[0])
            self.points.popleft()


class Tracking:
    """Several trackers as one. One that fails in the middle of a run is left out, or tried again after a pause.

    `pause`: the seconds of a pause; None: it is left out, for its failures may be slow. The log says so.
    """

    def __init__(self, trackers: Sequence[Tracker], pause: float | None = None):
        self._all = list(trackers)
        self._pause = pause
        self._at_work: list[AtWork] = []

    def __bool__(self) -> bool:
        return bool(self._all)

    def begin(self, run: str, about: Mapping[str, Any], after: int = 0) -> None:
        """A run begins, or is resumed `after` a step. What fails now raises: nothing is lost yet."""
        self._at_work = []
        try:
            for each in self._all:
                each.begin(run, about)
                self._at_work.append(AtWork(each))
                if after:
                    each.resumed(after)
        except BaseException:
            for begun in self._at_work:
                with contextlib.suppress(Exception):
                    begun.tracker.end({})
            self._at_work = []
            raise

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Values of a step."""
        for each in [*self._at_work]:
            each.points.append((step, values))
            if time.monotonic() >= each.again:
                self._log(each)

    def _log(self, each: AtWork) -> None:
        try:
            each.log()
        except Exception as error:  # of a library, a disk or a server
            if self._pause is None:
                log.error("tracking by %s has ended, the run goes on: %s", each.name, error)
                self._at_work.remove(each)
                with contextlib.suppress(Exception):
                    each.tracker.end({})
            else:
                text = "tracking by %s has failed, and is tried again after %g seconds: %s"
                log.error(text, each.name, self._pause, error)
                each.again = time.monotonic() + self._pause

    def end(self, values: Mapping[str, float] | None = None) -> None:
        """The run has ended, with its last values if it has finished."""
        for each in self._at_work:
            try:
                with contextlib.suppress(Exception):
                    each.log()
                each.tracker.end(values or {})
            except Exception as error:
                log.error("tracking by %s has not ended well: %s", each.name, error)
            if each.points:
                text = "tracking by %s has ended without its last %d points"
                log.error(text, each.name, len(each.points))
        self._at_work = []
