"""`mainstem run`: runs an experiment file."""

import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

from mainstem.cli import output
from mainstem.cli.hosts import Coordinator, Host, Hosts, several
from mainstem.cli.options import Changes, Json, Track

DIVERGED = 3  # the exit code if a loss was not finite


def run(
    file: Annotated[Path, typer.Argument(help="The experiment, in TOML.")],
    set_: Changes = None,
    folder: Annotated[
        Path | None, typer.Option(help="Where the runs go (default: runs/FILE).")
    ] = None,
    y: Annotated[
        str | None, typer.Option("--y", help="What is compared: accuracy, auc, regret, a column.")
    ] = None,
    x: Annotated[
        str | None, typer.Option("--x", help="The horizontal axis: uplink_bits (default: steps).")
    ] = None,
    track: Track = None,
    json: Json = False,
    hosts: Hosts = None,
    host: Host = None,
    coordinator: Coordinator = None,
) -> None:
    """Run every algorithm of an experiment file, save the runs and compare them in a table and a figure.

    The same command resumes interrupted runs and reuses finished ones. For several hosts, start the same command
    on each, in a folder that all see.

    Example: mainstem run examples/digits.toml --set simulate.steps=200

    Example: mainstem run FILE --hosts 2 --host 0 --coordinator 10.0.0.1:9000
    """
    with several(hosts, host, coordinator) as prints:
        _run(file, set_ or [], folder or Path("runs") / file.stem, y, x, track, json, prints)


def _run(
    file: Path,
    changes: list[str],
    folder: Path,
    y: str | None,
    x: str | None,
    track: list[str] | None,
    json: bool,
    prints: bool,
) -> None:
    from mainstem import compilation_cache
    from mainstem.errors import Diverged
    from mainstem.lab import REPORT, run_file

    sys.path.insert(0, "")  # so that a factory in the current folder is found
    warnings.simplefilter("ignore", Diverged)  # printed below, for finished runs too
    with compilation_cache.used():
        rows, figure = run_file(file, changes, folder, y, x, track)
    if not prints:
        return
    if json:
        output.as_json(
            {"runs": rows, "figure": str(figure), "report": str(figure.with_name(REPORT))}
        )
    else:
        output.as_table([{k: v for k, v in row.items() if k != "folder"} for row in rows])
        print(f"\nreport {figure.with_name(REPORT)}: open it in a browser")
        print(
            f"runs in {figure.parent}, figure {figure}, table {figure.with_suffix('.csv')} and .tex"
        )
    errors = [value for row in rows for name, value in row.items() if name.endswith("_error")]
    if errors and not any(errors):
        print("mainstem: all seeds gave the same: nothing here is random", file=sys.stderr)
    diverged = [f"{row['algorithm']} {row['diverged']}" for row in rows if "diverged" in row]
    if diverged:
        print(f"mainstem: {'; '.join(diverged)}: a smaller step may help", file=sys.stderr)
        raise typer.Exit(DIVERGED)
