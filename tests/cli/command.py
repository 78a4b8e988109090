"""The command line without a process of its own."""

import contextlib
import io
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from mainstem.cli import main


def mainstem(folder: Path, *words: str) -> SimpleNamespace:
    """Runs the command in this process, which has imported JAX already."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.MonkeyPatch.context() as patched,
        _log_as_before(),
    ):
        patched.setattr(sys, "argv", ["mainstem", *words])
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
    return SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())


@contextlib.contextmanager
def _log_as_before() -> Iterator[None]:
    """Undoes what a command does to the log: `hub` and `join` print it, and later tests would not see it."""
    log = logging.getLogger("mainstem")
    handlers, propagate, level = log.handlers, log.propagate, log.level
    try:
        yield
    finally:
        log.handlers, log.propagate = handlers, propagate
        log.setLevel(level)
