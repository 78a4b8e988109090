"""`mainstem status`: shows the status of the runs on a NATS server, and sends commands to their hubs."""

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from mainstem.cli import output
from mainstem.errors import BadParameter


def status(
    url: Annotated[str, typer.Argument(help="The NATS server.")],
    watch: Annotated[
        bool, typer.Option("--watch", help="Every second; with --json a line of JSON each time.")
    ] = False,
    pause: Annotated[str | None, typer.Option(help="Pause the merges of a run.")] = None,
    resume: Annotated[str | None, typer.Option(help="Resume a run that is paused or held.")] = None,
    back: Annotated[
        str | None, typer.Option(help="Go back to the last good model of a run, and resume it.")
    ] = None,
    finish: Annotated[str | None, typer.Option(help="End a run; its hub saves the model.")] = None,
    candidate: Annotated[
        str | None,
        typer.Option(help="Compare a run's clients with its current model from now on."),
    ] = None,
    credentials: Annotated[
        Path | None, typer.Option(help="A credential file.", envvar="MAINSTEM_CREDENTIALS")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show rounds, clients, bytes and losses of every run on a NATS server.

    Example: mainstem status nats://127.0.0.1:4222 --watch
    """
    from mainstem.engines.federate.control import command, statuses

    asked = {"pause": pause, "resume": resume, "back": back}
    asked |= {"finish": finish, "candidate": candidate}
    commands = {action: run for action, run in asked.items() if run is not None}
    if len(commands) > 1 or (commands and watch):
        given = ", ".join(f"--{name}" for name in [*commands, *(["watch"] if watch else [])])
        raise BadParameter(f"status: give one command at a time, got {given}")
    for action, run in commands.items():
        found = [asyncio.run(command(url, run, action, credentials))]
        output.as_json(found) if json else output.printed(_overview(found))
        return

    def fetched() -> list[dict[str, Any]]:
        return asyncio.run(statuses(url, credentials))

    if watch and not json and sys.stdout.isatty():
        _watch(fetched)
    while True:
        if json and watch:
            print(output.line(fetched()), flush=True)
        elif json:
            output.as_json(fetched())
        else:
            output.printed(_overview(fetched()))
        if not watch:
            return
        time.sleep(1)


def _watch(fetched: Callable[[], list[dict[str, Any]]]) -> None:
    """Updates the overview in place every second."""
    from rich.live import Live

    with Live(_overview(fetched())) as screen:
        while True:
            time.sleep(1)
            screen.update(_overview(fetched()))


def _overview(found: list[dict[str, Any]]) -> Any:
    from rich.console import Group

    if not found:
        return "no runs on this NATS server"
    return Group(*(part for each in found for part in _run(each)))


def _run(each: dict[str, Any]) -> list[Any]:
    parts: list[Any] = [
        f"{each['run']}: {each['state']}, {each['pace']}, merge {each['version']} at step {each['step']}, "
        f"{each['rounds_per_second']} rounds a second, {each['bytes_down']:,} bytes of models"
    ]
    if each["candidate"] is not None:
        parts.append(_candidate(each["candidate"]))
    rows = [
        {
            "client": name,
            "samples": client["samples"],
            "mean_loss": client["mean_loss"],
            "bytes_up": client["bytes_up"],
            "staleness": client["staleness"],
            "clipped": client["clipped"],
            "held": client["held"],
            "refused": sum(client["refused"].values()),
            "state": client["state"],
        }
        for name, client in each["clients"].items()
    ]
    return [*parts, output.table(rows)]


def _candidate(found: dict[str, float]) -> str:
    return (
        f"against the model of merge {found['version']}, on {found['samples']:,} samples since: loss "
        f"{found['loss']:.4f}, the model's {found['candidate']:.4f}; "
        f"regret at least {found['regret_at_least']:.4f}"
    )
