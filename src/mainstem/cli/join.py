"""`mainstem join`: runs a client on a file or generator, without code."""

import signal
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from mainstem.cli import output
from mainstem.errors import BadData


def join(
    url: Annotated[
        str, typer.Argument(help="The NATS server: nats://HOST:PORT or tls://HOST:PORT.")
    ],
    run: Annotated[str, typer.Option(help="The run's name.")],
    client: Annotated[str, typer.Option(help="Who this is, of the run's roster.")],
    stream: Annotated[
        str,
        typer.Option(help="FILE.csv, FILE.parquet, or module:function that yields pairs (x, y)."),
    ],
    target: Annotated[
        str | None, typer.Option(help="The column to predict (default: the last).")
    ] = None,
    credentials: Annotated[
        Path | None,
        typer.Option(help="The client's credential file.", envvar="MAINSTEM_CREDENTIALS"),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(help="Where the client remembers itself (default: runs/RUN-CLIENT)."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Join a run with a stream: predict each row, learn from it, and upload what was learnt.

    The same command resumes after the last row that was learnt.

    Example: mainstem join nats://127.0.0.1:4222 --run load --client AEP --stream aep.csv
    """
    from mainstem.engines.federate.client.learner import join as joined
    from mainstem.engines.federate.client.sample_sources import feed, is_function
    from mainstem.engines.federate.own_thread import compute_in_own_thread

    compute_in_own_thread()
    if is_function(stream):
        sys.path.insert(0, "")  # so that a module in the current folder is found
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the client leaves as after Ctrl-C
    place = folder or Path("runs") / f"{run}-{client}"
    with joined(
        url, run=run, client=client, credentials=credentials, folder=place, patient=True
    ) as learner:
        before, shown = learner.step, time.monotonic()
        for x, y in feed(stream, target, before, learner.session.format.hashes):
            learner.predict_one(x)
            learner.learn_one(x, y)
            if sys.stderr.isatty() and time.monotonic() > shown + 1:
                shown = time.monotonic()
                line = f"{client}: {learner.step:,} samples, mean loss {learner.mean_loss:.6f}"
                print(f"\r{line} ", end="", file=sys.stderr, flush=True)
    if learner.step == 0:
        raise BadData(f"{stream}: has no samples")
    if learner.step == before:
        print(f"{stream}: has nothing after sample {before}, which is in already", file=sys.stderr)
    row = {
        "client": client,
        "samples": learner.step,
        "mean_loss": learner.mean_loss,
        **learner.metrics,
        "bytes_sent": learner.sent_bytes,  # by this process, headers included
    }
    output.as_json(row) if json else output.as_table([row])
