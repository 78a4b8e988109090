"""`mainstem hub`: runs the hub of a federation."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from mainstem.cli import log_format, output
from mainstem.cli.options import Track


def hub(
    file: Annotated[
        Path, typer.Argument(help="The run, in TOML: tables problem, algorithm, federate.")
    ],
    url: Annotated[
        str | None,
        typer.Option(
            help="A NATS server, or several with commas (default: a private one).",
            envvar="MAINSTEM_URL",
        ),
    ] = None,
    credentials: Annotated[
        Path | None,
        typer.Option(help="The hub's credential file.", envvar="MAINSTEM_CREDENTIALS"),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Where the private server and the model lie (default: runs/FILE).",
            envvar="MAINSTEM_FOLDER",
        ),
    ] = None,
    replicas: Annotated[
        int, typer.Option(help="Copies on a cluster.", min=1, max=5, envvar="MAINSTEM_REPLICAS")
    ] = 1,
    wait: Annotated[
        float, typer.Option(help="Seconds to wait for the NATS server.", envvar="MAINSTEM_WAIT")
    ] = 60.0,
    metrics: Annotated[
        str | None,
        typer.Option(
            help="HOST:PORT for /metrics, /healthz and /readyz.", envvar="MAINSTEM_METRICS"
        ),
    ] = None,
    dashboard: Annotated[
        str | None,
        typer.Option(help="HOST:PORT of a live page of the run.", envvar="MAINSTEM_DASHBOARD"),
    ] = None,
    track: Track = None,
    log: log_format.Log = "text",
    log_level: log_format.LogLevel = "info",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Change one key: federate.pace=lockstep.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print a line of JSON every second.")
    ] = False,
) -> None:
    """Run the hub of a run: publish models, collect uploads and merge them.

    The same command resumes the run, also after a crash. Stop with Ctrl-C; the model is then in the folder.

    Example: mainstem hub examples/load.toml
    """
    from mainstem import compilation_cache
    from mainstem.engines.federate.hub.model_file import MODEL
    from mainstem.engines.federate.hub.process import SECRET, run_hub
    from mainstem.engines.federate.hub.start_model import with_start
    from mainstem.engines.federate.protocol.run_document import read
    from mainstem.engines.federate.transport.connection import shown

    log_format.configure(log, log_level)
    document = with_start(read(file, set_ or []), file.parent)
    place, private = folder or Path("runs") / file.stem, url is None

    def started(url: str) -> None:
        where, first = shown(url), document.clients[0]
        if private:
            keys: dict[str, Any] = {"join": place / SECRET, "status": place / SECRET}
        else:
            keys = {"join": f"{first}.creds", "status": "observer.creds"} if credentials else {}
        if json:
            secret = {"credentials": str(place / SECRET)} if private else {}
            print(output.line({"url": where, "run": document.rules.run, **secret}), flush=True)
            return
        print(f"{document.rules.run}: {len(document.clients)} clients may join at {where}")
        asked = {"join": f"--run {document.rules.run} --client {first} --stream FILE.csv"}
        for command, words in (asked | {"status": "--watch"}).items():
            key = f" --credentials {keys[command]}" if keys else ""
            print(f"  mainstem {command} {where} {words}{key}", flush=True)

    def page_ready(url: str) -> None:
        print(output.line({"page": url}) if json else f"live page: {url}", flush=True)

    def report(status: dict[str, Any]) -> None:
        if json:
            print(output.line(status), flush=True)
        elif sys.stdout.isatty():
            here = sum(each["state"] == "present" for each in status["clients"].values())
            counted = f"merge {status['version']}, {here} of {len(document.clients)} clients here"
            print(
                f"\r{counted}, {status['rounds_per_second']} rounds a second ", end="", flush=True
            )

    with compilation_cache.used():
        status = run_hub(
            document,
            place,
            url=url,
            credentials=credentials,
            replicas=replicas,
            metrics=metrics,
            dashboard=dashboard,
            page_ready=page_ready,
            track=track,
            wait=wait,
            started=started,
            report=report,
        )
    if json:
        print(output.line(status))
    else:
        print(
            f"{status['run']}: {status['state']} after {status['version']} merges; {place / MODEL}"
        )
