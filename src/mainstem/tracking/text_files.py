"""Tracking in text files: CSV, a row for each value, and JSON lines, a line for each step."""

import abc
import csv as csv_format
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from mainstem.report import finite_json
from mainstem.tracking.tracker import Tracker

HEAD = ("run", "step", "time", "name", "value")


class TextFile(Tracker):
    """Appends to a file; each step is there when `log` returns."""

    def __init__(self, path: str | Path):
        self._path = Path(path)
        self._run = ""
        self._file: TextIO | None = None

    def begin(self, run: str, about: Mapping[str, Any]) -> None:
        """Opens the file; several runs may follow each other in it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._run, self._file = run, self._path.open("a", newline="")
        if self._file.tell() == 0:
            self._write_head(self._file)
        self._write_begin(self._file, about)
        self._file.flush()

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Appends a step."""
        assert self._file is not None
        self._write(self._file, step, values)
        self._file.flush()

    def end(self, values: Mapping[str, float]) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write_head(self, file: TextIO) -> None:
        """Writes what a new file begins with."""

    def _write_begin(self, file: TextIO, about: Mapping[str, Any]) -> None:
        """Writes what a run begins with."""

    @abc.abstractmethod
    def _write(self, file: TextIO, step: int, values: Mapping[str, float]) -> None:
        """Writes a step."""


class CsvFile(TextFile):
    """Columns run, step, time, name, value."""

    def _write_head(self, file: TextIO) -> None:
        csv_format.writer(file).writerow(HEAD)

    def _write(self, file: TextIO, step: int, values: Mapping[str, float]) -> None:
        now = round(time.time(), 3)
        rows = ((self._run, step, now, name, value) for name, value in values.items())
        csv_format.writer(file).writerows(rows)


class JsonLines(TextFile):
    """A line for the beginning of a run, with its experiment, and one for each step."""

    def _write_begin(self, file: TextIO, about: Mapping[str, Any]) -> None:
        line = {"run": self._run, "time": round(time.time(), 3), "experiment": about}
        file.write(json.dumps(line, default=str) + "\n")

    def _write(self, file: TextIO, step: int, values: Mapping[str, float]) -> None:
        line = {"run": self._run, "step": step, "time": round(time.time(), 3), "values": values}
        file.write(finite_json.dumps(line) + "\n")


def csv(path: str | Path) -> Tracker:
    """A CSV file with a row for each value: run, step, time, name, value."""
    return CsvFile(path)


def json_lines(path: str | Path) -> Tracker:
    """A file with a line of JSON for each step."""
    return JsonLines(path)
