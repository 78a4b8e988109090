"""The merge log: a line of JSON for each merge and each change of the run, in the hub's folder.

A line is written before the hub's state is stored. A hub that was killed between the two repeats that merge, so it
drops the lines after its stored state when it opens the file. Each merge has exactly one line.
"""

import json
from pathlib import Path
from typing import Any, BinaryIO

MAX_SIZE = 2**26  # bytes, after which the file is rotated
TAIL = 2**22  # bytes at the end that are searched for lines to drop
ENCODER = json.JSONEncoder(separators=(",", ":"))


class MergeLog:
    """Appends to the file. The hub that opens it has merged up to `version`, and made these revisions."""

    def __init__(self, path: Path, version: int, revision: int):
        self._path = path
        self._file = self._opened()
        self._drop(version, revision)

    def add(self, merge: dict[str, Any]) -> None:
        """Appends a merge. It survives a kill of this process once this returns."""
        if self._file.tell() > MAX_SIZE:
            self._file.close()
            self._path.replace(self._path.with_suffix(".old.jsonl"))
            self._file = self._opened()
        self._file.write(ENCODER.encode(merge).encode() + b"\n")
        self.flush()

    def flush(self) -> None:
        """Writes what a full disk has not taken."""
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _opened(self) -> BinaryIO:
        return self._path.open("ab+")

    def _drop(self, version: int, revision: int) -> None:
        first = max(0, self._file.seek(0, 2) - TAIL)
        self._file.seek(first)
        lines = self._file.read().splitlines(keepends=True)
        while lines and not _is_stored(lines[-1], version, revision):
            lines.pop()
        self._file.truncate(first + sum(map(len, lines)))
        self._file.seek(0, 2)


def _is_stored(line: bytes, version: int, revision: int) -> bool:
    """Whether a line is complete, and its merge or change is in the stored state."""
    try:
        found = json.loads(line)
        stored = found["version"] <= version and found["revision"] <= revision
        return line.endswith(b"\n") and stored
    except (ValueError, KeyError, TypeError):
        return False
