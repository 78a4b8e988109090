"""`mainstem join`: runs a client on a file or generator, without code."""

import signal
import sys
import time
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer

from mainstem.cli import log_format, output
from mainstem.cli.options import Json
from mainstem.errors import BadData

AGAIN = 1.0  # seconds after which a client that has not left tries again


def join(
    url: Annotated[
        str,
        typer.Argument(
            help="The NATS server: nats://HOST:PORT or tls://HOST:PORT.", envvar="MAINSTEM_URL"
        ),
    ],
    run: Annotated[str, typer.Option(help="The run's name.", envvar="MAINSTEM_RUN")],
    client: Annotated[
        str, typer.Option(help="Who this is, of the run's roster.", envvar="MAINSTEM_CLIENT")
    ],
    stream: Annotated[
        str,
        typer.Option(help="FILE.csv, FILE.parquet, or module:function that yields pairs (x, y)."),
    ],
    target: Annotated[
        str | None, typer.Option(help="The column to predict (default: the last).")
    ] = None,
    empty: Annotated[
        Literal["refuse", "skip", "zero"],
        typer.Option(help="An empty cell: an error, its row is left out, or it is 0."),
    ] = "refuse",
    credentials: Annotated[
        Path | None,
        typer.Option(help="The client's credential file.", envvar="MAINSTEM_CREDENTIALS"),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Where the client remembers itself (default: runs/RUN-CLIENT).",
            envvar="MAINSTEM_FOLDER",
        ),
    ] = None,
    alone: Annotated[
        float | None,
        typer.Option(
            help="Also learn alone, with steps of this size, and report that loss too.",
            metavar="STEP",
            envvar="MAINSTEM_ALONE",
        ),
    ] = None,
    wait: Annotated[
        float,
        typer.Option(help="Seconds to wait for the server and the run.", envvar="MAINSTEM_WAIT"),
    ] = 60.0,
    log: log_format.Log = "text",
    log_level: log_format.LogLevel = "info",
    json: Json = False,
) -> None:
    """Join a run with a stream: predict each row, learn from it, and upload what was learnt.

    The same command resumes after the last row that was learnt.

    Example: mainstem join nats://127.0.0.1:4222 --run load --client AEP --stream aep.csv
    """
    from mainstem import compilation_cache
    from mainstem.engines.federate.client.learner import join as joined
    from mainstem.engines.federate.client.sample_sources import Columns, feed, is_function
    from mainstem.engines.federate.own_thread import compute_in_own_thread

    log_format.configure(log, log_level)
    compute_in_own_thread()
    if is_function(stream):
        sys.path.insert(0, "")  # so that a module in the current folder is found
    for each in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(each, _leave)
    place = folder or Path("runs") / f"{run}-{client}"
    asked: dict[str, Any] = {
        "run": run,
        "client": client,
        "credentials": credentials,
        "folder": place,
        "alone": alone,
    }
    with compilation_cache.used(), joined(url, **asked, patient=True, wait=wait) as learner:
        before, shown = learner.step, time.monotonic()
        form = learner.session.format
        columns = Columns(target, form.named, form.hashes, empty)
        try:
            for x, y in feed(stream, before, columns):
                learner.predict_one(x)
                learner.learn_one(x, y)
                if sys.stderr.isatty() and time.monotonic() > shown + 1:
                    shown = time.monotonic()
                    line = f"{client}: {learner.step:,} samples, mean loss {learner.mean_loss:.6f}"
                    print(f"\r{line} ", end="", file=sys.stderr, flush=True)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
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
    if alone is not None:
        row["gain"] = learner.gain  # over learning alone
    output.as_json(row) if json else output.as_table([row])


def _leave(*_: object) -> NoReturn:
    """SIGTERM is how a service is stopped: the client leaves, and that is no failure.

    Raised inside of a callback of a library, the exit would be ignored: so it comes again until the client leaves.
    """
    signal.setitimer(signal.ITIMER_REAL, AGAIN)
    sys.exit(0)
