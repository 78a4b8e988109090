"""How log records are printed: as lines to read, or as JSON with the event and its facts."""

import datetime
import json
import logging
from typing import Annotated, Literal

import typer

Log = Annotated[
    Literal["text", "json"], typer.Option(help="How the log is printed.", envvar="MAINSTEM_LOG")
]
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error"],
    typer.Option(help="The least level that is printed.", envvar="MAINSTEM_LOG_LEVEL"),
]


class JsonLines(logging.Formatter):
    """One object a line: time, level, event, message, and facts such as the run and the client."""

    def format(self, record: logging.LogRecord) -> str:
        """A record as JSON."""
        found = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", record.name),
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            found["error"] = self.formatException(record.exc_info)
        return json.dumps(found, default=str)


class TextLines(logging.Formatter):
    """Time, level and message."""

    def format(self, record: logging.LogRecord) -> str:
        """A record as a line; the traceback of an error follows."""
        line = f"{_time(record)} {record.levelname.lower():7} {record.getMessage()}"
        return line if not record.exc_info else f"{line}\n{self.formatException(record.exc_info)}"


def _time(record: logging.LogRecord) -> str:
    when = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def configure(kind: str, level: str) -> None:
    """Prints the log of this process to stderr, in this format and from this level on."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if kind == "json" else TextLines())
    log = logging.getLogger("mainstem")
    log.handlers, log.propagate = [handler], False
    log.setLevel(level.upper())
