"""`mainstem secure`: creates and changes the certificates and credentials of a federation's NATS server."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from mainstem.cli import output
from mainstem.cli.options import Json

NOTES = {
    "reload": "One reload is enough, and everybody else stays connected.",
    "reload twice": "Two reloads are needed: some accounts are new to the server. Everybody else stays connected.",
    "restart": "The server must be stopped and started again: a reload does not take this.",
}
SERVER_FILES = ("server.conf", "listen.conf", "accounts.conf", "server.pem")


def secure(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the set-up is.")],
    clients: Annotated[
        str | None, typer.Option(help="Clients to add, with commas between: a,b,c.")
    ] = None,
    observer: Annotated[
        str | None, typer.Option(help="An observer to add who sees only the runs of --run.")
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(help="A run they may join (default: the only one, or main) or see."),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(help="A name or address of the server (default: localhost, 127.0.0.1)."),
    ] = None,
    port: Annotated[int | None, typer.Option(help="The server's (default: 4222).")] = None,
    bind: Annotated[
        str | None, typer.Option(help="The address at which the server listens (default: all).")
    ] = None,
    revoke: Annotated[
        str | None, typer.Option(help="Users to lock out, with commas between.")
    ] = None,
    rotate: Annotated[
        str | None, typer.Option(help="Users who get a new key; also hub, observer.")
    ] = None,
    renew: Annotated[
        bool, typer.Option("--renew", help="Sign a new certificate of the server.")
    ] = False,
    days: Annotated[
        int | None, typer.Option(help="How long that certificate is valid (default: 3653).")
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Show users, runs, and the days left of certificates.")
    ] = False,
    json: Json = False,
) -> None:
    """Create a NATS server's configuration, certificates, and a credential file for each client.

    In a folder that already contains them, clients and runs are added and all keys are retained. The printed
    commands say whether the server needs a reload or a restart; a reload keeps everybody else connected.

    Example: mainstem secure setup --clients a,b,c --run load --host hub.example.org

    Example: mainstem secure setup --revoke b
    """
    from mainstem.engines.federate.security import setup
    from mainstem.engines.federate.security.summary import summary

    address = bool(host or bind) or port is not None
    actions = (clients or address, observer, revoke, rotate, renew, show)
    if sum(map(bool, actions)) != 1:
        raise typer.BadParameter(
            "give one of --clients (or --host, --port, --bind), --observer, --revoke, --rotate, --renew, --show"
        )
    if observer and not run:
        raise typer.BadParameter("--observer needs --run; the user `observer` sees all runs")
    if run and not (clients or observer):
        raise typer.BadParameter("--run needs --clients or --observer")
    if days is not None and not (clients or address or renew):
        raise typer.BadParameter("--days needs --renew, or a call that signs a certificate")
    if show:
        _show(summary(folder), json)
        return
    if observer:
        change = setup.observe(folder, observer, run or [])
    elif revoke:
        change = setup.revoke(folder, _names(revoke))
    elif rotate:
        change = setup.rotate(folder, _names(rotate))
    elif renew:
        change = setup.renew(folder, days)
    else:
        change = setup.secure(
            folder,
            clients=_names(clients),
            runs=run or _default_runs(folder),
            hosts=host or None,
            port=port,
            bind=bind,
            days=days,
        )
    url = summary(folder)["url"]
    commands = _server(folder, change.server)
    if clients:
        commands |= _join(folder, url, (run or _default_runs(folder))[0], _names(clients)[0])
    if observer and run:
        commands["status"] = f"mainstem status {url} --run {run[0]} {_file(folder, observer)}"
    _print(change, url, commands, json)


def _default_runs(folder: Path) -> list[str]:
    """The runs of new clients if none is given: the only one that there is; `main` in a new set-up."""
    from mainstem.engines.federate.security.summary import known_runs

    known = known_runs(folder)
    if len(known) > 1:
        raise typer.BadParameter(f"--clients needs --run: one of {', '.join(known)}, or a new one")
    return known or ["main"]


def _names(given: str | None) -> list[str]:
    return [name.strip() for name in given.split(",")] if given else []


def _server(folder: Path, needed: str | None) -> dict[str, str]:
    """The command by which the server takes the change."""
    if needed is None:
        return {}
    if needed in ("start", "restart"):
        key = "server" if needed == "start" else needed
        return {key: f"cd {shlex.quote(str(folder))} && nats-server -c server.conf"}
    reload = f"nats-server --signal reload={shlex.quote(str(folder / 'nats-server.pid'))}"
    return {"reload": reload if needed == "reload" else f"{reload} && sleep 2 && {reload}"}


def _join(folder: Path, url: str, run: str, client: str) -> dict[str, str]:
    """The commands that use these files, by role."""
    return {
        "hub": f"mainstem hub FILE.toml --url {url} {_file(folder, 'hub')}",
        "client": f"mainstem join {url} --run {run} --client {client} --stream FILE.csv {_file(folder, client)}",
        "status": f"mainstem status {url} {_file(folder, 'observer')}",
    }


def _file(folder: Path, user: str) -> str:
    return "--credentials " + shlex.quote(str(folder / f"{user}.creds"))


def _print(change: Any, url: str, commands: dict[str, str], json: bool) -> None:
    files, notes = [str(path) for path in change.files], _notes(change)
    if json:
        found = {"files": files, "url": url, "server": change.server, "notes": notes}
        output.as_json(found | {"commands": commands})
        return
    lines = [f"{who:7} {command}" for who, command in commands.items()]
    print("\n".join([*(f"wrote {path}" for path in files), "", *notes, *lines]))


def _notes(change: Any) -> list[str]:
    """What the administrator must know of a change."""
    notes = [change.note] if change.note else []
    if change.server in NOTES:
        notes.append(NOTES[change.server])
        copied = [path.name for path in change.files if path.name in SERVER_FILES]
        if copied:
            notes.append(f"If the server runs elsewhere, copy there first: {', '.join(copied)}.")
    return notes


def _show(found: dict[str, Any], json: bool) -> None:
    if json:
        output.as_json(found)
        return
    print(f"{found['url']}, listens at {found['bind'] or 'all addresses'}")
    for who, valid in found["certificates"].items():
        left = f"{valid['days_left']} days left" if valid else "not in this folder"
        print(f"certificate of the {who}: {left}")
    rows = [{name: user[name] for name in ("name", "role", "runs")} for user in found["users"]]
    output.as_table([row | {"runs": ", ".join(row["runs"])} for row in rows])
