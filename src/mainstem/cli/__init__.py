"""Command line: each command parses its arguments, makes one call, prints, and exits with a code.

Exit codes: 0 done, 1 refused or failed (one line on stderr gives the reason), 2 wrong usage, 3 a run diverged,
4 a federated run needs somebody (`status`), 130 interrupted.
"""

import logging
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from mainstem.cli import (
    advise,
    bounds,
    dashboard,
    data,
    demo,
    hub,
    join,
    order,
    plan,
    report,
    reproduce,
    run,
    secure,
    show,
    status,
    sweep,
)
from mainstem.cli.failures import INTERRUPTED, end_interrupted, explained
from mainstem.progress import interrupted, keep_interrupts

app = typer.Typer(
    name="mainstem",
    help="Online federated learning: streams, regret, and every bit counted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"mainstem {version('mainstem')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Online federated learning: streams, regret, and every bit counted."""


app.command("demo")(demo.demo)
app.command("run")(run.run)
app.command("sweep")(sweep.sweep)
app.command("show")(show.show)
app.command("report")(report.report)
app.command("plan")(plan.plan)
app.command("advise")(advise.advise)
app.command("bounds")(bounds.bounds)
app.command("reproduce")(reproduce.reproduce)
app.command("hub")(hub.hub)
app.command("join")(join.join)
app.command("status")(status.status)
app.command("dashboard")(dashboard.dashboard)
app.command("secure")(secure.secure)
app.add_typer(data.app, name="data")
app.add_typer(order.app, name="order")


def main() -> None:
    """Runs the command line; a failure becomes one line on stderr and an exit code."""
    keep_interrupts()
    logging.basicConfig(format="%(message)s")
    logging.getLogger("mainstem").setLevel(logging.INFO)  # progress, if stderr is not a terminal
    try:
        app()
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            end_interrupted()
        raise
    except Exception as error:
        if interrupted.is_set():  # what was broken off may fail in its own way: a file half written
            end_interrupted()
        sys.exit(explained(error))
