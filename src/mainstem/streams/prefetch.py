"""Prefetch: reads the next ranges of steps in a background thread while the last one is in use."""

import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

AHEAD = 2  # ranges that wait, beside the one in use

Arrays = tuple[np.ndarray, ...]


class Range(NamedTuple):
    """What was read of the steps `begin` to `end` - 1."""

    begin: int
    end: int
    arrays: Arrays

    def part(self, begin: int, end: int) -> Arrays:
        """The arrays of some of the steps."""
        return tuple(x[begin - self.begin : end - self.begin] for x in self.arrays)


class Prefetch:
    """Calls `read(begin, end)` ahead, for the ranges of the same length that follow.

    The thread ends when `AHEAD` ranges wait, and another begins when one was taken: there is none to close.
    A range that cannot be read ahead is read again when it is asked for, and fails then.

    >>> prefetch = Prefetch(lambda begin, end: (np.arange(begin, end),), steps=10)
    >>> [prefetch(*each)[0].tolist() for each in [(0, 3), (3, 6), (4, 7)]]
    [[0, 1, 2], [3, 4, 5], [4, 5, 6]]
    """

    def __init__(self, read: Callable[[int, int], Arrays], steps: int | None):
        self._read, self._steps = read, steps
        self._asked = threading.Lock()  # one caller at a time
        self._changed = threading.Condition()
        self._last: Range | None = None
        self._ahead: deque[Range] = deque()
        self._thread: threading.Thread | None = None
        self._stopping = False

    def __call__(self, begin: int, end: int) -> Arrays:
        with self._asked:
            if self._last is None or not self._last.begin <= begin < end <= self._last.end:
                found = self._following(begin, end)
                if found is None:
                    found = Range(begin, end, self._read(begin, end))
                self._last = found
                self._begin(end - begin)
            return self._last.part(begin, end)

    def _following(self, begin: int, end: int) -> Range | None:
        """The range that waits, or is being read, if it is the one asked for; else stops reading ahead."""
        with self._changed:
            while self._thread is not None and not self._ahead:
                self._changed.wait()
            if self._ahead and self._ahead[0].begin == begin and self._ahead[0].end == end:
                return self._ahead.popleft()
            self._stopping, thread = True, self._thread
        if thread is not None:
            thread.join()
        self._stopping = False
        self._ahead.clear()
        return None

    def _begin(self, length: int) -> None:
        """Starts to read ahead, if it is not under way."""
        assert self._last is not None
        with self._changed:
            if self._thread is None:
                begin = self._ahead[-1].end if self._ahead else self._last.end
                self._thread = threading.Thread(
                    target=self._fill, args=(begin, length), name="mainstem-prefetch"
                )
                self._thread.start()

    def _fill(self, begin: int, length: int) -> None:
        try:
            while True:
                end = begin + length if self._steps is None else min(begin + length, self._steps)
                with self._changed:
                    if begin >= end or self._stopping or len(self._ahead) >= AHEAD:
                        self._thread = None
                        self._changed.notify()
                        return
                found = Range(begin, end, self._read(begin, end))
                with self._changed:
                    self._ahead.append(found)
                    self._changed.notify()
                begin = end
        except Exception:
            with self._changed:  # the caller reads it again, and sees the error
                self._thread = None
                self._changed.notify()
