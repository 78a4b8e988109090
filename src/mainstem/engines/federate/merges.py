"""What was merged when: a line of JSON for each merge, in the hub's folder.

A line is written before the hub's state is stored. A hub that was killed between the two makes that merge again,
so the lines beyond its stored state are dropped when it opens the file: each merge that counts has just one line.
"""

import json
from pathlib import Path
from typing import Any, BinaryIO

FULL = 2**26  # bytes, after which the file is put aside and a new one begun
TAIL = 2**22  # bytes in which the lines to be dropped must lie


class Merges:
    """The file, opened by a hub whose stored state has `version` merges in it."""

    def __init__(self, path: Path, version: int):
        self._path = path
        self._file = self._opened()
        self._drop(version)

    def add(self, merge: dict[str, Any]) -> None:
        """One more, safe from a kill of this process when this returns."""
        if self._file.tell() > FULL:
            self._file.close()
            self._path.replace(self._path.with_suffix(".old.jsonl"))
            self._file = self._opened()
        self._file.write(json.dumps(merge, separators=(",", ":")).encode() + b"\n")
        self._file.flush()

    def close(self) -> None:
        """No more."""
        self._file.close()

    def _opened(self) -> BinaryIO:
        return self._path.open("ab+")

    def _drop(self, version: int) -> None:
        first = max(0, self._file.seek(0, 2) - TAIL)
        self._file.seek(first)
        lines = self._file.read().splitlines(keepends=True)
        while lines and not _counts(lines[-1], version):
            lines.pop()
        self._file.truncate(first + sum(map(len, lines)))
        self._file.seek(0, 2)


def _counts(line: bytes, version: int) -> bool:
    """Whether a line is whole, and of a merge that is in."""
    try:
        return line.endswith(b"\n") and json.loads(line)["version"] <= version
    except (ValueError, KeyError, TypeError):
        return False
