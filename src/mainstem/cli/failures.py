"""Failures: an error as one line on stderr, and its exit code."""

import os
import sys
from typing import NoReturn

from mainstem.errors import MainstemError

REFUSED = 1
INTERRUPTED = 130  # typer's exit code after Ctrl-C


def explained(error: Exception) -> int:
    """Prints the error in one line and returns the exit code; a defect of this package is raised again."""
    if isinstance(error, MainstemError):
        line = str(error)
    elif isinstance(error, OSError):
        line = f"{error.filename or 'the folder'}: {error.strerror or error}"
    else:
        raise error
    print(f"mainstem: {line}", file=sys.stderr)
    return REFUSED


def end_interrupted() -> NoReturn:
    """Ends the process after Ctrl-C."""
    print("mainstem: interrupted; the same command resumes it", file=sys.stderr)
    end_now(INTERRUPTED)


def end_now(code: int) -> NoReturn:
    """Ends the process without waiting for what its threads do, or for other hosts."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
