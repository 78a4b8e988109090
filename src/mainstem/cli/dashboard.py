"""`mainstem dashboard`: a live page of federated runs, or of simulations."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from mainstem.cli import output
from mainstem.errors import MainstemError


def dashboard(
    what: Annotated[
        str,
        typer.Argument(
            help="A NATS server, or a folder of simulations; -: the first line of standard input.",
            envvar="MAINSTEM_URL",
        ),
    ],
    run: Annotated[str | None, typer.Option(help="One run of the server (default: all).")] = None,
    credentials: Annotated[
        Path | None,
        typer.Option(
            help="A credential file: the observer's to look, the hub's to give orders.",
            envvar="MAINSTEM_CREDENTIALS",
        ),
    ] = None,
    listen: Annotated[
        str, typer.Option(help="HOST:PORT of the page.", envvar="MAINSTEM_LISTEN")
    ] = "127.0.0.1:8080",
    token: Annotated[
        Path | None,
        typer.Option(
            help="The file with the page's token, written if it does not exist (default: one of this user).",
            envvar="MAINSTEM_TOKEN_FILE",
        ),
    ] = None,
    child: Annotated[
        bool,
        typer.Option(
            "--child",
            help="End when standard input is closed, and let the program that started it go first.",
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the address as JSON.")] = False,
) -> None:
    """Show runs on a page while they go on: losses, merges, sites, refusals, alarms, and an operator's orders.

    The page is for a browser on this machine, and for whoever has the address with its token. Stop with Ctrl-C.

    Example: mainstem dashboard nats://127.0.0.1:4222
    """
    try:
        from mainstem.dashboard import access, server
    except ModuleNotFoundError as error:
        text = f"the live page needs {error.name}: pip install 'mainstem[dashboard]'"
        raise MainstemError(text) from None

    def started(url: str) -> None:
        print(output.line({"page": url}) if json else f"live page: {url}", flush=True)

    if what == "-":
        what = sys.stdin.readline().strip()
    if child:
        server.give_way()
        server.end_with_parent()
    found = access.token_in(token or server.default_token_file())
    server.serve(server.source_of(what, run, credentials), listen, found, started)
