"""Tracking in text files: CSV, a row for each value, and JSON lines, a line for each step."""

import abc
import contextlib
import csv as csv_format
import io
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import filelock

from mainstem.errors import MainstemError
from mainstem.report import finite_json
from mainstem.tracking.tracker import Tracker

HEAD = ("run", "step", "time", "name", "value")


class TextFile(Tracker):
    """Appends to a file, which is locked for other writers; each step is there when `log` returns."""

    def __init__(self, path: str | Path):
        self._path = Path(path)
        self._run = ""
        self._file: io.FileIO | None = None
        self._lock = filelock.FileLock(f"{self._path}.lock", thread_local=False)
        self._known = 0  # the steps up to this one are in the file

    def begin(self, run: str, about: Mapping[str, Any]) -> None:
        """Opens the file; several runs may follow each other in it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(blocking=False)
        except filelock.Timeout:
            raise MainstemError(
                f"{self._path}: another run is tracked in this file: choose another one"
            ) from None
        self._run, self._known = run, 0
        try:
            self._file = io.FileIO(self._path, "a+")
            self._append("" if os.fstat(self._file.fileno()).st_size else self._head())
            self._append(self._beginning(about))
        except BaseException:
            self.end({})
            raise

    def resumed(self, step: int) -> None:
        """Leaves out the steps that the file has."""
        with self._path.open(encoding="utf-8", errors="replace", newline="") as file:
            for run, found in self._steps(file):
                if run == self._run:
                    self._known = found  # the last one: a run of this name may have begun anew

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Appends a step."""
        if step > self._known:
            self._append(self._text(step, values))

    def _append(self, text: str) -> None:
        """Appends whole lines; begins a new one where a kill or a full disk has left a part of a line."""
        assert self._file is not None
        data = text.encode()
        end = self._file.seek(0, os.SEEK_END)
        if data and end:
            self._file.seek(end - 1)
            data = data if self._file.read(1) == b"\n" else b"\n" + data
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError:  # such as a full disk: all of it is written later, or nothing
            with contextlib.suppress(OSError):
                self._file.truncate(end)
            raise

    def end(self, values: Mapping[str, float]) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._lock.is_locked:
            Path(self._lock.lock_file).unlink(missing_ok=True)
            self._lock.release()

    def _head(self) -> str:
        """What a new file begins with."""
        return ""

    def _beginning(self, about: Mapping[str, Any]) -> str:
        """What a run begins with."""
        return ""

    @abc.abstractmethod
    def _text(self, step: int, values: Mapping[str, float]) -> str:
        """The lines of a step."""

    @abc.abstractmethod
    def _steps(self, lines: Iterator[str]) -> Iterator[tuple[str, int]]:
        """The run and the step of each line that can be read."""


class CsvFile(TextFile):
    """Columns run, step, time, name, value."""

    def _head(self) -> str:
        return _rows([HEAD])

    def _text(self, step: int, values: Mapping[str, float]) -> str:
        now = round(time.time(), 3)
        return _rows([(self._run, step, now, name, value) for name, value in values.items()])

    def _steps(self, lines: Iterator[str]) -> Iterator[tuple[str, int]]:
        for line in lines:  # each by itself: a torn one may open a quotation
            if not line.endswith(("\r", "\n")):
                continue  # a part of one, also of its number
            with contextlib.suppress(csv_format.Error, ValueError):
                run, step, _, _, _ = next(csv_format.reader([line]))
                yield run, int(step)


def _rows(rows: list[tuple[Any, ...]]) -> str:
    written = io.StringIO()
    csv_format.writer(written).writerows(rows)
    return written.getvalue()


class JsonLines(TextFile):
    """A line for the beginning of a run, with its experiment, and one for each step."""

    def _beginning(self, about: Mapping[str, Any]) -> str:
        line = {"run": self._run, "time": round(time.time(), 3), "experiment": about}
        return json.dumps(line, default=str) + "\n"

    def _text(self, step: int, values: Mapping[str, float]) -> str:
        line = {"run": self._run, "step": step, "time": round(time.time(), 3), "values": values}
        return finite_json.dumps(line) + "\n"

    def _steps(self, lines: Iterator[str]) -> Iterator[tuple[str, int]]:
        for line in lines:
            with contextlib.suppress(ValueError, TypeError, KeyError):
                found = json.loads(line)
                yield str(found["run"]), int(found["step"])


def csv(path: str | Path) -> Tracker:
    """A CSV file with a row for each value: run, step, time, name, value."""
    return CsvFile(path)


def json_lines(path: str | Path) -> Tracker:
    """A file with a line of JSON for each step."""
    return JsonLines(path)
