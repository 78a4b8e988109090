"""Log records of a federation: the name of an event, a line to read, and facts such as the run and the client.

A formatter prints the line, or everything as JSON. docs/operations.md lists the names.
"""

import logging
from functools import partial
from typing import Any

log = logging.getLogger("mainstem")


def record(
    level: int, event: str, text: str, *, run: str = "", client: str = "", **facts: Any
) -> None:
    """Logs an event. The line begins with the run and the client, where they are given."""
    who = [run, f"client {client}" if client else "", text]
    known = {"run": run, "client": client, **facts}
    given = {name: value for name, value in known.items() if value != ""}
    log.log(level, "%s", ": ".join(filter(None, who)), extra={"event": event, "facts": given})


info = partial(record, logging.INFO)
warning = partial(record, logging.WARNING)
error = partial(record, logging.ERROR)
