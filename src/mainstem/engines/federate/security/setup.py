"""Writes a NATS server's configuration, its TLS certificate and a credential file for each user."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mainstem import check
from mainstem.disk import write
from mainstem.engines.federate.protocol.subjects import token
from mainstem.engines.federate.security import certificates, credentials
from mainstem.engines.federate.security.permissions import RESERVED, accounts
from mainstem.errors import MainstemError

HOSTS = ("localhost", "127.0.0.1")
PORT = 4222
PRIVATE, OPEN = 0o600, 0o644
SETUP = "setup.json"
CONFIGURATION = """\
# Written by `mainstem secure`, which adds clients and runs to it: changes made by hand are lost then.
# Start it within this folder:  nats-server -c server.conf
# After an addition:            restart it; one reload does not make a new client known (2.15)
# The server needs server.conf, server.pem and server.key, and nothing else of this folder. ca.key and the
# credentials (*.creds) are better kept elsewhere; hub.creds goes to the hub, and each client gets its own.
port: {port}
max_payload: 8MB
tls {{
  cert_file: "server.pem"
  key_file: "server.key"
  min_version: "1.3"
}}
jetstream {{
  store_dir: "data"
  sync_interval: always
}}
accounts: {accounts}
"""


class Setup(NamedTuple):
    """What a folder is a set-up of. It holds nothing secret."""

    hosts: list[str]
    port: int
    keys: dict[str, str]  # everybody's public key
    runs: dict[str, list[str]]  # of each client

    @property
    def url(self) -> str:
        """The server's address, at its first host."""
        host = self.hosts[0]
        return f"tls://[{host}]:{self.port}" if ":" in host else f"tls://{host}:{self.port}"


def secure(
    folder: Path,
    *,
    clients: Sequence[str],
    runs: Sequence[str] = ("main",),
    hosts: Sequence[str] | None = None,
    port: int | None = None,
) -> list[Path]:
    """Write a server's configuration and everybody's credentials into `folder`; the files written.

    In a folder that has a set-up, the clients are added to it, or the runs to the clients: all keys stay. The
    hosts (by default localhost) and the port (by default 4222) stay too, unless others are given.
    """
    _check(clients, runs, hosts, port)
    found = setup_in(folder)
    if found is None:
        first = Setup(list(hosts or HOSTS), PORT if port is None else port, {}, {})
        return _made(folder, _granted(first, clients, runs))
    wanted = _granted(found, clients, runs)
    wanted = wanted._replace(
        hosts=list(hosts or found.hosts), port=found.port if port is None else port
    )
    if wanted == found:
        raise MainstemError(f"{folder}: holds a set-up with all of this already: it is left alone")
    return _written(folder, wanted, again=wanted.hosts != found.hosts)


def _check(
    clients: Sequence[str], runs: Sequence[str], hosts: Sequence[str] | None, port: int | None
) -> None:
    for parameter, names in (("clients", clients), ("runs", runs)):
        if isinstance(names, str) or not names:
            raise check.refuse("secure", parameter, "be a list of names", names)
        for name in names:
            token("secure", parameter, name)
    for name in clients:
        if name.lower() in RESERVED:
            raise check.refuse("secure", "clients", "not be called hub or observer", name)
    if hosts is not None and (isinstance(hosts, str) or not hosts):
        raise check.refuse("secure", "hosts", "be a list of names or addresses", hosts)
    for name in hosts or ():
        certificates.host("secure", "hosts", name)
    if port is not None:
        check.integer("secure", "port", port, least=1, most=65535)


def _granted(setup: Setup, clients: Sequence[str], runs: Sequence[str]) -> Setup:
    """The set-up with these clients in these runs."""
    roster = {name: list(given) for name, given in setup.runs.items()}
    for name in clients:
        known = roster.setdefault(name, [])
        known += [run for run in dict.fromkeys(runs) if run not in known]
    alike = {name.lower() for name in roster}
    if len(set(clients)) < len(clients) or len(alike) < len(roster):
        wanted = "name each client once, and not by upper and lower case alone"
        raise check.refuse("secure", "clients", wanted, list(clients))
    return setup._replace(runs=roster)


def setup_in(folder: Path) -> Setup | None:
    """The set-up in the folder, if there is one; nothing else may be there."""
    file = folder / SETUP
    if file.is_file():
        try:
            return Setup(**json.loads(file.read_text()))
        except (ValueError, TypeError, OSError):
            raise MainstemError(
                f"{file}: cannot be read: it is no longer what was written"
            ) from None
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise MainstemError(f"{folder}: is not empty and holds no set-up: choose another folder")
    return None


def _made(folder: Path, setup: Setup) -> list[Path]:
    """A new set-up, there as a whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as aside:
        within = Path(aside) / "new"
        within.mkdir(mode=0o700)
        key = certificates.new_key()
        paths = [
            write(within / "ca.key", key, PRIVATE),
            write(within / "ca.pem", certificates.authority(key), OPEN),
            write(within / "server.key", certificates.new_key(), PRIVATE),
        ]
        paths += _written(within, setup, again=True)
        within.replace(folder)
    return [folder / path.name for path in paths]


def _written(folder: Path, setup: Setup, *, again: bool) -> list[Path]:
    """Write what the set-up needs and the folder has not; the set-up itself last."""
    paths = []
    if again:
        key, above, authority = (_text(folder / n) for n in ("server.key", "ca.key", "ca.pem"))
        signed = certificates.server(key, above, authority, setup.hosts)
        paths.append(write(folder / "server.pem", signed, OPEN))
    keys = dict(setup.keys)
    for name in (*RESERVED, *setup.runs):
        if name not in keys:
            path = folder / f"{name}.creds"
            keys[name] = _key(name, path, _text(folder / "ca.pem"))
            paths.append(path)
    setup = setup._replace(keys=keys)
    content = _configuration(setup.port, accounts(keys, setup.runs))
    paths.append(write(folder / "server.conf", content, OPEN))
    paths.append(write(folder / SETUP, json.dumps(setup._asdict(), indent=1) + "\n", OPEN))
    return paths


def _key(name: str, path: Path, authority: str) -> str:
    """The public key of a new user; a credential that an interrupted call has left is taken over."""
    if not path.exists():
        write(path, credentials.text(name, credentials.new_seed(), authority), PRIVATE)
    return credentials.public(credentials.seed_in(path))


def _configuration(port: int, users: Mapping[str, Any]) -> str:
    return CONFIGURATION.format(port=port, accounts=json.dumps(users, indent=1))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise MainstemError(f"{path}: is needed for this: {error.strerror}") from None
