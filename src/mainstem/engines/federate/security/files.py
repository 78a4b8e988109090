"""Writes the files of a set-up. A call that is interrupted leaves a set-up that works; the next call completes it.

`setup.json` decides. New credentials are written first, as NAME.creds.next, and take their place after it. The
parts of the server's configuration that depend on it are written after it, whenever they differ. `server.conf`
includes them and is written only if it is missing: changes made there by hand are kept.
"""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mainstem.disk import write
from mainstem.engines.federate.security import certificates, credentials, record
from mainstem.engines.federate.security.permissions import accounts
from mainstem.engines.federate.security.record import Setup
from mainstem.errors import MainstemError

PRIVATE, OPEN = 0o600, 0o644
NEXT, REVOKED = ".creds.next", ".creds.revoked"
PID_FILE = "nats-server.pid"
SERVER = f"""\
# Written once by `mainstem secure`, which does not change it again: edit it, but leave the two includes.
# Start it within this folder:  nats-server -c server.conf
# Reload what has changed:      nats-server --signal reload={PID_FILE}
# The server needs server.conf, listen.conf, accounts.conf, server.pem and server.key, and nothing else of this
# folder. ca.key and the credentials (*.creds) are better kept elsewhere; hub.creds goes to the hub, and each
# client gets its own.
include ./listen.conf
include ./accounts.conf
pid_file: "{PID_FILE}"
"""
SETTINGS = """\
max_payload: 8MB
tls {
  cert_file: "server.pem"
  key_file: "server.key"
  min_version: "1.3"
}
jetstream {
  store_dir: "data"
  sync_interval: always
}
"""
GENERATED = (
    "# Written anew by every call of `mainstem secure`: put changes of your own into server.conf.\n"
)


def create(folder: Path, setup: Setup, days: int) -> list[Path]:
    """Writes a new set-up, as a whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as aside:
        within = Path(aside) / "new"
        within.mkdir(mode=0o700)
        key = certificates.new_key()
        paths = [
            write(within / "ca.key", key, PRIVATE),
            write(within / "ca.pem", certificates.authority(key, days), OPEN),
            write(within / "server.key", certificates.new_key(), PRIVATE),
            sign(within, setup, days),
        ]
        paths += update(within, setup)
        within.replace(folder)
    return [folder / path.name for path in paths]


def update(folder: Path, setup: Setup) -> list[Path]:
    """Writes what the set-up needs and the folder has not: a credential for each user without a key above all."""
    setup, made = _with_keys(folder, setup)
    paths = _write_changed(folder, {record.FILE: record.text(setup)})
    paths += _configure(folder, setup)
    for name in made:
        paths.append((folder / f"{name}{NEXT}").replace(folder / f"{name}.creds"))
    return paths


def complete(folder: Path, setup: Setup) -> list[Path]:
    """Completes a call that was interrupted, and replaces the server.conf of an older layout."""
    paths = []
    for path in folder.glob(f"*{NEXT}"):
        name = path.name.removesuffix(NEXT)
        if credentials.public(credentials.seed_in(path)) == setup.keys.get(name):
            paths.append(path.replace(folder / f"{name}.creds"))
        else:
            path.unlink()
    server = folder / "server.conf"
    if server.exists() and "accounts.conf" not in (text := _effective(read(server))):
        if text != _older(setup):
            raise MainstemError(
                f"{server}: is of an older layout and was changed by hand: rename it to server.conf.old, repeat "
                "this command, and copy your changes into the new server.conf"
            )
        paths += _configure(folder, setup)
        paths.append(write(server, SERVER + SETTINGS, OPEN))
    return paths


def set_aside(folder: Path, name: str) -> list[Path]:
    """Renames the credential of a user who is locked out, if it is there."""
    path = folder / f"{name}.creds"
    return [path.replace(folder / f"{name}{REVOKED}")] if path.exists() else []


def was_user(folder: Path, name: str) -> bool:
    """Whether the credential of somebody who is not a user is there: a revocation may have been interrupted."""
    return any((folder / f"{name}{ending}").exists() for ending in (".creds", REVOKED))


def sign(folder: Path, setup: Setup, days: int) -> Path:
    """Signs a certificate of the server."""
    key, above, authority = (read(folder / name) for name in ("server.key", "ca.key", "ca.pem"))
    signed = certificates.server(key, above, authority, setup.hosts, days)
    return write(folder / "server.pem", signed, OPEN)


def renew_authority(folder: Path, setup: Setup, days: int) -> list[Path]:
    """Signs the authority's certificate anew, with the same key, and writes it into the credentials in the folder.

    The old certificate, and the credentials that have it, are good until it ends.
    """
    authority = certificates.authority(read(folder / "ca.key"), days)
    paths = []
    for name in setup.users:
        path = folder / f"{name}.creds"
        if path.exists():
            content = credentials.text(name, credentials.seed_in(path), authority)
            paths.append(write(path, content, PRIVATE))
    return [*paths, write(folder / "ca.pem", authority, OPEN)]


def read(path: Path) -> str:
    """The text of a file that must be there."""
    try:
        return path.read_text()
    except OSError as error:
        raise MainstemError(f"{path}: is needed for this: {error.strerror}") from None


def _with_keys(folder: Path, setup: Setup) -> tuple[Setup, list[str]]:
    """The set-up with a key for everybody, and whose key is new."""
    made = [name for name in setup.users if name not in setup.keys]
    keys = {name: setup.keys.get(name, "") for name in setup.users}
    for name in made:
        seed = credentials.new_seed()
        content = credentials.text(name, seed, read(folder / "ca.pem"))
        write(folder / f"{name}{NEXT}", content, PRIVATE)
        keys[name] = credentials.public(seed)
    return setup._replace(keys=keys), made


def _configure(folder: Path, setup: Setup) -> list[Path]:
    """Writes the server's configuration where it differs."""
    listen = f"port: {setup.port}\n" + (f'host: "{setup.bind}"\n' if setup.bind else "")
    parts = {"listen.conf": GENERATED + listen, "accounts.conf": GENERATED + _accounts(setup)}
    if not (folder / "server.conf").exists():
        parts["server.conf"] = SERVER + SETTINGS
    return _write_changed(folder, parts)


def _write_changed(folder: Path, contents: Mapping[str, str]) -> list[Path]:
    return [
        write(folder / name, content, OPEN)
        for name, content in contents.items()
        if not (folder / name).exists() or read(folder / name) != content
    ]


def _accounts(setup: Setup) -> str:
    spare: dict[str, Any] = {name: {} for name in setup.spare}
    return f"accounts: {json.dumps(_used(setup) | spare, indent=1)}\n"


def _used(setup: Setup) -> dict[str, Any]:
    return accounts(
        setup.keys, setup.runs, setup.observers, names=setup.accounts, runs=setup.all_runs
    )


def _older(setup: Setup) -> str:
    """What server.conf held when it was one file, without comments."""
    return f"port: {setup.port}\n{SETTINGS}accounts: {json.dumps(_used(setup), indent=1)}\n"


def _effective(text: str) -> str:
    """A configuration without comments."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
