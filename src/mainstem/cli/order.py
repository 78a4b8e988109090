"""`mainstem order`: tells the hub of a run what to do."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from mainstem.cli import output
from mainstem.cli.options import Json
from mainstem.cli.status import overview

app = typer.Typer(help="Tell the hub of a run what to do.", no_args_is_help=True)

Url = Annotated[str, typer.Argument(help="The NATS server.")]
Run = Annotated[str, typer.Argument(help="The run's name.")]
Client = Annotated[str, typer.Argument(help="A client's name.")]
Credentials = Annotated[
    Path | None, typer.Option(help="The hub's credential file.", envvar="MAINSTEM_CREDENTIALS")
]


def _send(
    url: str, run: str, order: str, credentials: Path | None, json: bool, **arguments: Any
) -> None:
    from mainstem.engines.federate.control import send_order

    found = [asyncio.run(send_order(url, run, order, credentials, **arguments))]
    output.as_json(found) if json else output.printed(overview(found))


PLAIN = {
    "pause": "Merge nothing until `resume`.",
    "resume": "Go on merging, after `pause` or an alarm.",
    "finish": "End the run; its hub writes the model and ends.",
    "candidate": "Compare the clients with the current model from now on.",
    "snapshot": "Write the current model to the hub's folder.",
}  # orders that need nothing but a run, and what they do


def _plain(order: str) -> Callable[..., None]:
    def send(url: Url, run: Run, credentials: Credentials = None, json: Json = False) -> None:
        _send(url, run, order, credentials, json)

    return send


for _name, _help in PLAIN.items():
    app.command(_name, help=_help)(_plain(_name))


@app.command()
def back(
    url: Url,
    run: Run,
    merge: Annotated[
        int | None, typer.Option(help="A merge whose model is kept (default: the last good one).")
    ] = None,
    credentials: Credentials = None,
    json: Json = False,
) -> None:
    """Go back to an earlier model, and go on from there."""
    _send(url, run, "back", credentials, json, **({} if merge is None else {"merge": merge}))


@app.command()
def forgive(
    url: Url, run: Run, client: Client, credentials: Credentials = None, json: Json = False
) -> None:
    """End the quarantine of a client."""
    _send(url, run, "forgive", credentials, json, client=client)


@app.command()
def change(
    url: Url,
    run: Run,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change one key: federate.deadline=2, algorithm.step=0.1."),
    ] = None,
    add: Annotated[list[str] | None, typer.Option(help="Add a client.")] = None,
    remove: Annotated[list[str] | None, typer.Option(help="Remove a client.")] = None,
    rename: Annotated[list[str] | None, typer.Option(help="Rename a client: OLD=NEW.")] = None,
    credentials: Credentials = None,
    json: Json = False,
) -> None:
    """Change rules or clients of a run, from the next merge on.

    Example: mainstem order change nats://127.0.0.1:4222 load --add zone-9 --set federate.deadline=2
    """
    renamed = dict(_renamed(each) for each in rename or [])
    asked = {"set": set_ or [], "add": add or [], "remove": remove or [], "rename": renamed}
    _send(url, run, "change", credentials, json, **asked)


def _renamed(given: str) -> tuple[str, str]:
    old, equals, new = given.partition("=")
    if not (old and equals and new):
        raise typer.BadParameter(f"--rename: OLD=NEW, got {given}")
    return old, new


@app.command()
def delete(url: Url, run: Run, credentials: Credentials = None) -> None:
    """Remove everything of a run from the NATS server. Its hub must have ended."""
    from mainstem.engines.federate.control import delete_run

    asyncio.run(delete_run(url, run, credentials))
    print(f"{run}: removed from the NATS server; the hub's and the clients' folders are left")
