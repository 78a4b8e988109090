"""Trackers by their names, as on the command line, and the tracking of one run."""

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mainstem import check
from mainstem.tracking.mlflow import mlflow
from mainstem.tracking.tensorboard import tensorboard
from mainstem.tracking.text_files import csv, json_lines
from mainstem.tracking.tracker import Tracker

log = logging.getLogger("mainstem")
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


def trackers(asked: Asked) -> "Tracking":
    """The trackers that were asked for, as one."""
    if asked is None:
        return Tracking([])
    listed = [asked] if isinstance(asked, Tracker | str) else asked
    return Tracking([tracker(each) for each in listed])


class Tracking:
    """Several trackers as one. One that fails in the middle of a run is left out, and the log says so."""

    def __init__(self, trackers: Sequence[Tracker]):
        self._all = list(trackers)
        self._at_work: list[Tracker] = []

    def __bool__(self) -> bool:
        return bool(self._all)

    def begin(self, run: str, about: Mapping[str, Any], after: int = 0) -> None:
        """A run begins, or is resumed `after` a step. What fails now raises: nothing is lost yet."""
        self._at_work = []
        try:
            for each in self._all:
                each.begin(run, about)
                self._at_work.append(each)
                if after:
                    each.resumed(after)
        except BaseException:
            for each in self._at_work:
                with contextlib.suppress(Exception):
                    each.end({})
            self._at_work = []
            raise

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Values of a step."""
        self._each(lambda each: each.log(step, values))

    def end(self, values: Mapping[str, float] | None = None) -> None:
        """The run has ended, with its last values if it has finished."""
        self._each(lambda each: each.end(values or {}))
        self._at_work = []

    def _each(self, call: Callable[[Tracker], None]) -> None:
        for each in [*self._at_work]:
            try:
                call(each)
            except Exception as error:  # of a library, a disk or a server
                self._at_work.remove(each)
                name = type(each).__name__
                log.error("tracking by %s has ended, the run goes on: %s", name, error)
                with contextlib.suppress(Exception):
                    each.end({})
