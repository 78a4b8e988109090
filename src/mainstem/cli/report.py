"""`mainstem report`: shows saved runs on a page."""

from pathlib import Path
from typing import Annotated

import typer

from mainstem.cli import output
from mainstem.cli.options import Json


def report(
    folders: Annotated[list[Path], typer.Argument(help="Folders of runs, or of several runs.")],
    to: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("report.html"),
    y: Annotated[
        str | None, typer.Option("--y", help="What is compared: accuracy, auc, regret, a column.")
    ] = None,
    regret: Annotated[
        bool | None,
        typer.Option(help="Whether to compute regrets and bounds (default: if it takes seconds)."),
    ] = None,
    title: Annotated[str, typer.Option(help="The title of the page.")] = "",
    json: Json = False,
) -> None:
    """Write a page that shows runs of one stream side by side. It is one HTML file, and needs no network.

    It has what was run, loss and accuracy, regret with its certificate and the bound of its theorem,
    communication, the clients, delays and heterogeneity.

    Example: mainstem report runs/digits -o report.html
    """
    from mainstem.lab import report_runs

    rows = report_runs(folders, to, y, regret, title)
    if json:
        output.as_json({"runs": rows, "report": str(to)})
        return
    output.as_table(rows)
    print(f"\nreport {to}: open it in a browser")
