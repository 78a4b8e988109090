"""`mainstem sweep`: runs the grid of an experiment file."""

import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

from mainstem.cli import output
from mainstem.cli.hosts import Coordinator, Host, Hosts, several
from mainstem.cli.options import Changes, Json


def sweep(
    file: Annotated[Path, typer.Argument(help="The experiment with its table `sweep`, in TOML.")],
    set_: Changes = None,
    folder: Annotated[
        Path | None, typer.Option(help="Where the runs go (default: runs/FILE-sweep).")
    ] = None,
    y: Annotated[
        str | None, typer.Option("--y", help="What is compared: accuracy, mse, loss, a column.")
    ] = None,
    json: Json = False,
    hosts: Hosts = None,
    host: Host = None,
    coordinator: Coordinator = None,
) -> None:
    """Run every point of the grid in the table `sweep` of an experiment file, and find the best one.

    Points that differ in numbers alone are one compiled program. The same command resumes an interrupted sweep.
    For several hosts, start the same command on each, in a folder that all see.

    Example: mainstem sweep examples/sweep.toml --set simulate.steps=200
    """
    with several(hosts, host, coordinator) as prints:
        _sweep(file, set_ or [], folder or Path("runs") / f"{file.stem}-sweep", y, json, prints)


def _sweep(
    file: Path, changes: list[str], folder: Path, y: str | None, json: bool, prints: bool
) -> None:
    from mainstem import compilation_cache
    from mainstem.errors import Diverged, OnEdge
    from mainstem.lab import REPORT, sweep_file
    from mainstem.run.swept import edge_warning

    sys.path.insert(0, "")  # so that a factory in the current folder is found
    warnings.simplefilter("ignore", Diverged)  # a column of the table
    warnings.simplefilter("ignore", OnEdge)  # printed below
    with compilation_cache.used():
        found, figure = sweep_file(file, changes, folder, y)
    if not prints:
        return
    if json:
        output.as_json(
            {
                "points": found.rows,
                "best": found.best,
                "neighbours": found.neighbours,
                "edges": found.edges,
                "figure": str(figure),
                "report": str(figure.with_name(REPORT)),
            }
        )
        return
    output.as_table([found.rows[n] for n in found.order])
    print(f"\nreport {figure.with_name(REPORT)}: open it in a browser")
    print(f"runs in {figure.parent}, figure {figure}, table {figure.with_suffix('.csv')}")
    if found.edges:
        print(f"mainstem: {edge_warning(found)}", file=sys.stderr)
