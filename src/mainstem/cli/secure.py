"""`mainstem secure`: creates TLS certificates and credentials for the NATS server of a federation."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from mainstem.cli import output


def secure(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the set-up goes.")],
    clients: Annotated[str, typer.Option(help="Subjects with commas between: a,b,c.")],
    run: Annotated[
        list[str] | None, typer.Option(help="A run they may join (default: main).")
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(help="A name or address of the server (default: localhost, 127.0.0.1)."),
    ] = None,
    port: Annotated[int | None, typer.Option(help="The server's (default: 4222).")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Create a NATS server's configuration, certificates, and a credential file for each client.

    In a folder that already contains them, clients and runs are added and all keys are retained.

    Example: mainstem secure setup --clients a,b,c --run load --host hub.example.org
    """
    from mainstem.engines.federate.security.setup import secure as secured
    from mainstem.engines.federate.security.setup import setup_in

    names = [name.strip() for name in clients.split(",")]
    runs = run or ["main"]
    paths = secured(folder, clients=names, runs=runs, hosts=host or None, port=port)
    setup = setup_in(folder)
    url = setup.url if setup else ""
    commands = _commands(folder, url, runs[0], names[0])
    if json:
        output.as_json({"files": [str(path) for path in paths], "url": url, "commands": commands})
    else:
        print("\n".join(f"wrote {path}" for path in paths))
        print("\n" + "\n".join(f"{who:7} {command}" for who, command in commands.items()))


def _commands(folder: Path, url: str, run: str, client: str) -> dict[str, str]:
    """The commands that use these files, by role."""

    def file(user: str) -> str:
        return "--credentials " + shlex.quote(str(folder / f"{user}.creds"))

    return {
        "server": f"cd {shlex.quote(str(folder))} && nats-server -c server.conf",
        "hub": f"mainstem hub FILE.toml --url {url} {file('hub')}",
        "client": f"mainstem join {url} --run {run} --client {client} --stream FILE.csv {file(client)}",
        "status": f"mainstem status {url} {file('observer')}",
    }
