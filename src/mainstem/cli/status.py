"""`mainstem status`: how the runs on a broker go, and orders to them."""

import asyncio
import time
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
    credentials: Annotated[Path | None, typer.Option(help="A credential file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Rounds, clients, bytes and losses of every run on a broker.

    Example: mainstem status nats://127.0.0.1:4222 --watch
    """
    from mainstem.engines.federate.look import look, order

    for what, run in {"pause": pause, "resume": resume, "finish": finish}.items():
        if run is not None:
            asyncio.run(order(url, run, what, credentials))
    while True:
        found = asyncio.run(look(url, credentials))
        if json:
            show.as_json(found)
        else:
            _tell(found)
        if not watch:
            return
        time.sleep(1)


def _tell(found: list[dict[str, Any]]) -> None:
    if not found:
        print("no runs on this broker")
    for each in found:
        print(
            f"{each['run']}: {each['state']}, {each['pace']}, merge {each['version']} at step {each['step']}, "
            f"{each['rounds_per_second']} rounds a second"
        )
        rows = [
            {
                "client": name,
                "samples": client["merged"],
                "mean_loss": client["loss"] / max(client["merged"], 1),
                "bytes_up": client["bytes_up"],
                "refused": sum(client["refused"].values()),
                "state": client["state"],
            }
            for name, client in each["clients"].items()
        ]
        show.as_table(rows)
