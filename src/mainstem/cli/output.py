"""Output: tables for people, JSON for machines."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any


def as_json(content: Any) -> None:
    """Prints `content` as JSON, and nothing else."""
    from mainstem.report import finite_json

    print(finite_json.dumps(content, indent=1))


def line(content: Any) -> str:
    """`content` as one line of JSON."""
    from mainstem.report import finite_json

    return finite_json.dumps(content)


def as_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Prints rows as an aligned table with their keys as its head."""
    if sys.stdout.isatty():
        printed(table(rows))
        return
    from mainstem.report import tables

    print(tables.text(rows))  # of any width: a file or another program reads it


def printed(what: Any) -> None:
    """Prints an object of Rich."""
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else 200, highlight=False).print(what)


def table(rows: Sequence[Mapping[str, Any]]) -> Any:
    """An aligned table with the rows' keys as its head."""
    from rich.table import Table

    from mainstem.report import tables

    made = Table(box=None, pad_edge=False, header_style="bold")
    known = tables.columns(rows)
    for name, numeric in known.items():
        made.add_column(
            name.replace("_", " "), justify="right" if numeric else "left", no_wrap=True
        )
    for row in rows:
        made.add_row(*(tables.cell(row, name) for name in known))
    return made
