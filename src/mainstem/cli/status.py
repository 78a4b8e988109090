"""`mainstem status`: how the runs on a broker go, and orders to them."""

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from mainstem.cli import show


def status(
    url: Annotated[str, typer.Argument(help="The broker.")],
    watch: Annotated[bool, typer.Option("--watch", help="Again every second.")] = False,
    pause: Annotated[str | None, typer.Option(help="Let a run merge no more for now.")] = None,
    resume: Annotated[str | None, typer.Option(help="Let it go on.")] = None,
    finish: Annotated[str | None, typer.Option(help="End it; its hub saves the model.")] = None,
    candidate: Annotated[
        str | None,
        typer.Option(help="Let a run's clients compare themselves with its model of now."),
    ] = None,
    credentials: Annotated[Path | None, typer.Option(help="A credential file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Rounds, clients, bytes and losses of every run on a broker.

    Example: mainstem status nats://127.0.0.1:4222 --watch
    """
    from mainstem.engines.federate.look import look, order

    orders = {"pause": pause, "resume": resume, "finish": finish, "candidate": candidate}
    for what, run in orders.items():
        if run is not None:
            told = [asyncio.run(order(url, run, what, credentials))]
            show.as_json(told) if json else show.printed(_told(told))
            return
    if watch and not json and sys.stdout.isatty():
        _watch(lambda: asyncio.run(look(url, credentials)))
    while True:
        found = asyncio.run(look(url, credentials))
        if json:
            show.as_json(found)
        else:
            show.printed(_told(found))
        if not watch:
            return
        time.sleep(1)


def _watch(look: Callable[[], list[dict[str, Any]]]) -> None:
    """The same place on the screen, renewed."""
    from rich.live import Live

    with Live(_told(look())) as screen:
        while True:
            time.sleep(1)
            screen.update(_told(look()))


def _told(found: list[dict[str, Any]]) -> Any:
    from rich.console import Group

    if not found:
        return "no runs on this broker"
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
            "samples": client["merged"],
            "mean_loss": client["mean_loss"],
            "bytes_up": client["bytes_up"],
            "staleness": client["staleness"],
            "refused": sum(client["refused"].values()),
            "state": client["state"],
        }
        for name, client in each["clients"].items()
    ]
    return [*parts, show.table(rows)]


def _candidate(found: dict[str, float]) -> str:
    return (
        f"against the model of merge {found['version']}, on {found['samples']:,} samples since: loss "
        f"{found['loss']:.4f}, the model's {found['candidate']:.4f}; "
        f"regret at least {found['regret_at_least']:.4f}"
    )
