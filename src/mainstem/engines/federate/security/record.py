"""The record of a set-up, `setup.json`: who uses the server, with which key, in which runs. It holds no secret."""

import contextlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mainstem import check
from mainstem.disk import lock
from mainstem.engines.federate.protocol.subjects import token
from mainstem.engines.federate.security.permissions import RESERVED
from mainstem.errors import MainstemError

FILE = "setup.json"
SPARE = 32  # accounts that the server knows before they have a user


class Setup(NamedTuple):
    """What a folder is a set-up of."""

    hosts: list[str]
    port: int
    bind: str | None  # the address to listen at; None: all
    keys: dict[str, str]  # everybody's public key
    runs: dict[str, list[str]]  # of each client
    observers: dict[str, list[str]]  # the runs of each observer that may not see all
    accounts: dict[str, str]  # the NATS account of each client and of each of these observers
    former_runs: list[str]  # those that users had who were revoked

    @property
    def url(self) -> str:
        """The server's address, at its first host."""
        host = self.hosts[0]
        return f"tls://[{host}]:{self.port}" if ":" in host else f"tls://{host}:{self.port}"

    @property
    def users(self) -> list[str]:
        """The names of all who have a credential."""
        return [*RESERVED, *self.runs, *self.observers]

    @property
    def all_runs(self) -> list[str]:
        """The runs of all users. The hub and the observer go on with one that has no client left."""
        given = [*self.runs.values(), *self.observers.values(), self.former_runs]
        return list(dict.fromkeys(itertools.chain(*given)))

    @property
    def spare(self) -> list[str]:
        """Accounts without a user. A user who gets one of them needs one reload of the server, not two."""
        return list(itertools.islice(self._unused(), SPARE))

    def _unused(self) -> Iterator[str]:
        used = set(self.accounts.values())
        return (name for n in itertools.count(1) if (name := f"user-{n}") not in used)

    def with_accounts(self) -> "Setup":
        """The set-up in which every user has an account, and nobody else."""
        unused = self._unused()
        accounts = {
            name: self.accounts.get(name) or next(unused) for name in (*self.runs, *self.observers)
        }
        return self._replace(accounts=accounts)


def granted(
    parameter: str, roster: Mapping[str, Sequence[str]], names: Sequence[str], runs: Sequence[str]
) -> dict[str, list[str]]:
    """The roster with these users in these runs."""
    if isinstance(names, str) or not names or len(set(names)) < len(names):
        raise check.refuse("secure", parameter, "be a list of names, each once", names)
    if isinstance(runs, str) or not runs:
        raise check.refuse("secure", "runs", "be a list of names", runs)
    for run in runs:
        token("secure", "runs", run)
    found = {name: list(given) for name, given in roster.items()}
    for name in names:
        if token("secure", parameter, name).lower() in RESERVED:
            raise check.refuse("secure", parameter, "not be called hub or observer", name)
        known = found.setdefault(name, [])
        known += [run for run in dict.fromkeys(runs) if run not in known]
    return found


def read(folder: Path) -> Setup | None:
    """The set-up in the folder, if there is one; nothing else may be there."""
    file = folder / FILE
    if file.is_file():
        try:
            content = json.loads(file.read_text())
            named = {name: name for name in content["runs"]}
            older: dict[str, Any] = {
                "bind": None,
                "observers": {},
                "accounts": named,
                "former_runs": [],
            }
            return Setup(**(older | content))
        except (ValueError, TypeError, KeyError, OSError):
            raise MainstemError(
                f"{file}: cannot be read: it is no longer what was written"
            ) from None
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise MainstemError(f"{folder}: is not empty and holds no set-up: choose another folder")
    return None


def present(folder: Path) -> Setup:
    """The set-up in the folder, which must be there."""
    found = read(folder)
    if found is None:
        raise MainstemError(f"{folder}: holds no set-up: make one with --clients")
    return found


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[Setup]:
    """The set-up in the folder, which no other call changes meanwhile."""
    present(folder)
    held = lock(folder)
    try:
        yield present(folder)
    finally:
        held.release()


def text(setup: Setup) -> str:
    """The content of the file."""
    return json.dumps(setup._asdict(), indent=1) + "\n"
