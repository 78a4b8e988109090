"""`mainstem join`: a client without code."""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from mainstem.cli import show


def join(
    url: Annotated[str, typer.Argument(help="The broker: nats://HOST:PORT or tls://HOST:PORT.")],
    run: Annotated[str, typer.Option(help="The run's name.")],
    client: Annotated[str, typer.Option(help="Who this is, of the run's roster.")],
    stream: Annotated[str, typer.Option(help="FILE.csv, FILE.parquet or module:function.")],
    target: Annotated[
        str | None, typer.Option(help="The column to predict (default: the last).")
    ] = None,
    credentials: Annotated[Path | None, typer.Option(help="The client's credential file.")] = None,
    folder: Annotated[
        Path | None,
        typer.Option(help="Where the client remembers itself (default: runs/RUN-CLIENT)."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Join a run with a stream: answer each row, learn from it, and share what was learnt.

    The same command again goes on after the last row that is in.

    Example: mainstem join nats://127.0.0.1:4222 --run load --client AEP --stream aep.csv
    """
    from mainstem.engines.federate.feeds import feed
    from mainstem.engines.federate.learner import join as joined

    place = folder or Path("runs") / f"{run}-{client}"
    with joined(
        url, run=run, client=client, credentials=credentials, folder=place, patient=True
    ) as learner:
        shown = time.monotonic()
        for x, y in feed(stream, target, after=learner.step):
            learner.predict_one(x)
            learner.learn_one(x, y)
            if sys.stderr.isatty() and time.monotonic() > shown + 1:
                shown = time.monotonic()
                mean = learner.loss / learner.step
                told = f"{client}: {learner.step:,} samples, mean loss {mean:.6f}"
                print(f"\r{told} ", end="", file=sys.stderr, flush=True)
        row = {
            "client": client,
            "samples": learner.step,
            "mean_loss": learner.loss / max(learner.step, 1),
            **learner.metrics,
            "bytes_up": learner.link.sent_bytes,
        }
    show.as_json(row) if json else show.as_table([row])
