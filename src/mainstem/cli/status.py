"""`mainstem status`: shows the status of the runs on a NATS server."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from mainstem.cli import output
from mainstem.cli.options import Json

NEEDS_SOMEBODY = 4  # exit code: a run has an alarm, or its hub does not answer
SECOND = 1.0


def status(
    url: Annotated[str, typer.Argument(help="The NATS server.", envvar="MAINSTEM_URL")],
    run: Annotated[str | None, typer.Option(help="One run (default: all).")] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Every second; with --json a line of JSON each time.")
    ] = False,
    credentials: Annotated[
        Path | None, typer.Option(help="A credential file.", envvar="MAINSTEM_CREDENTIALS")
    ] = None,
    json: Json = False,
) -> None:
    """Show rounds, clients, bytes, losses and alarms of the runs on a NATS server.

    Exit code 4: a run has an alarm, or its hub does not answer.

    Example: mainstem status nats://127.0.0.1:4222 --watch
    """
    from mainstem.engines.federate.control import needs_somebody

    show = _shown(json, watch)
    found = asyncio.run(_follow(url, credentials, run, watch, show))
    if any(map(needs_somebody, found)):
        raise typer.Exit(NEEDS_SOMEBODY)


Show = Callable[[list[dict[str, Any]]], None]


async def _follow(
    url: str, credentials: Path | None, run: str | None, watch: bool, show: Show
) -> list[dict[str, Any]]:
    """Shows the status once, or every second until Ctrl-C; returns the last."""
    from mainstem.engines.federate.control import Observer

    async with await Observer.open(url, credentials, run) as observer:
        while True:
            found = await observer.statuses()
            show(found)
            if not watch:
                return found
            await asyncio.sleep(SECOND)


def _shown(json: bool, watch: bool) -> Show:
    """How a status is shown."""
    if json:
        return _print_line if watch else output.as_json
    if not (watch and sys.stdout.isatty()):
        return lambda found: output.printed(overview(found))
    from rich.live import Live

    screen = Live()
    screen.start()
    return lambda found: screen.update(overview(found))


def _print_line(found: list[dict[str, Any]]) -> None:
    print(output.line(found), flush=True)


def overview(found: list[dict[str, Any]]) -> Any:
    """A table for each run."""
    from rich.console import Group

    if not found:
        return "no runs on this NATS server"
    return Group(*(part for each in found for part in _run(each)))


def _run(each: dict[str, Any]) -> list[Any]:
    age = f", last heard {each['age']:.0f} s ago" if each["state"] == "not answering" else ""
    parts: list[Any] = [
        f"{each['run']}: {each['state']}{age}, {each['pace']}, merge {each['version']} at step {each['step']}, "
        f"{each['rounds_per_second']} rounds a second, {each['bytes_down']:,} bytes of models"
    ]
    parts += [_alarm(alarm) for alarm in each["alarms"]]
    if each["candidate"] is not None:
        parts.append(_candidate(each["candidate"]))
    alone = each.get("alone")  # not of a hub of an earlier version
    if alone is not None:
        parts.append(_alone(alone))
    rows = [
        {
            "client": name,
            "samples": client["samples"],
            "mean_loss": client["mean_loss"],
            "recent_loss": client["recent_loss"],
            "bytes_up": client["bytes_up"],
            "staleness": client["staleness"],
            "clipped": client["clipped"],
            "held": client["held"],
            "refused": sum(client["refused"].values()),
            "state": client["state"],
        }
        | ({} if alone is None else {"gain": (client["alone"] or {}).get("gain")})
        for name, client in each["clients"].items()
    ]
    return [*parts, output.table(rows)]


def _alarm(alarm: dict[str, Any]) -> str:
    who = f"client {alarm['client']}: " if alarm["client"] else ""
    return f"  alarm {alarm['alarm']}: {who}{alarm['text']}"


def _alone(found: dict[str, float]) -> str:
    samples = max(found["samples"], 1)
    return (
        f"against each alone, {found['clients']} clients, {found['samples']:,} samples: mean loss together "
        f"{found['loss'] / samples:.4f}, alone {found['alone'] / samples:.4f}"
    )


def _candidate(found: dict[str, float]) -> str:
    return (
        f"against the model of merge {found['version']}, on {found['samples']:,} samples since: loss "
        f"{found['loss']:.4f}, the model's {found['candidate']:.4f}; "
        f"regret at least {found['regret_at_least']:.4f}"
    )
