"""`mainstem show`: shows saved runs."""

from pathlib import Path
from typing import Annotated

import typer

from mainstem.cli import output
from mainstem.cli.options import Json


def show(
    folders: Annotated[list[Path], typer.Argument(help="Folders of runs, or of several runs.")],
    json: Json = False,
) -> None:
    """Show saved runs: what was run, for how long, and the last values of its curves.

    Example: mainstem show runs/digits
    """
    from mainstem.lab import show_runs

    rows = show_runs(folders)
    output.as_json(rows) if json else output.as_table(rows)
