"""Sets up the access to a NATS server, and changes it: adds and removes users, replaces keys and certificates."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mainstem import check
from mainstem.engines.federate.protocol.subjects import token
from mainstem.engines.federate.security import certificates, files, record
from mainstem.engines.federate.security.permissions import RESERVED
from mainstem.engines.federate.security.record import Setup, granted
from mainstem.errors import MainstemError

HOSTS = ("localhost", "127.0.0.1")
PORT = 4222
START, RESTART, RELOAD, RELOAD_TWICE = "start", "restart", "reload", "reload twice"
SOON = 365  # days: an authority that ends within them is renewed together with the server's certificate


class Change(NamedTuple):
    """The files that were written, what the server needs, and what its administrator must do."""

    files: list[Path]
    server: str | None  # START, RESTART, RELOAD, RELOAD_TWICE, or nothing
    note: str | None = None


def secure(
    folder: Path,
    *,
    clients: Sequence[str] = (),
    runs: Sequence[str] = ("main",),
    hosts: Sequence[str] | None = None,
    port: int | None = None,
    bind: str | None = None,
    days: int | None = None,
) -> Change:
    """Write a server's configuration and everybody's credentials into `folder`.

    In a folder that has a set-up, the clients are added to it, or the runs to the clients: all keys stay. The
    hosts (by default localhost), the port (by default 4222) and the address to listen at (by default all) stay
    too, unless others are given. A certificate of the server is valid for `days`, by default ten years.
    """
    _check(hosts, port, bind, days)
    if record.read(folder) is None:
        first = Setup(list(hosts or HOSTS), port or PORT, bind, {}, {}, {}, {}, [])
        first = first._replace(runs=granted("clients", {}, clients, runs))
        paths = files.create(folder, _with_accounts(first, "clients"), days or certificates.DAYS)
        return Change(paths, START)
    with record.locked(folder) as old:
        new = old._replace(
            hosts=list(hosts or old.hosts), port=port or old.port, bind=bind or old.bind
        )
        if days is not None and new.hosts == old.hosts:
            raise check.refuse("secure", "days", "come with other hosts or with --renew", days)
        if clients or new == old:
            new = new._replace(runs=granted("clients", old.runs, clients, runs))
        new = _with_accounts(new, "clients")
        paths = files.complete(folder, old)
        if new.hosts != old.hosts:
            paths.append(files.sign(folder, new, days or certificates.DAYS))
        return _changed(folder, old, new, paths)


def observe(folder: Path, name: str, runs: Sequence[str]) -> Change:
    """Adds an observer who sees these runs only, or adds runs to it."""
    with record.locked(folder) as old:
        unknown = [run for run in runs if run not in old.all_runs]
        if unknown:
            known = ", ".join(old.all_runs)
            raise check.refuse("secure", "run", f"be one of the set-up ({known})", unknown[0])
        new = old._replace(observers=granted("observer", old.observers, [name], runs))
        new = _with_accounts(new, "observer")
        return _changed(folder, old, new, files.complete(folder, old))


def revoke(folder: Path, names: Sequence[str]) -> Change:
    """Removes users. Their credential files are renamed, and a later user of that name gets another key."""
    with record.locked(folder) as old:
        for name in names:
            if token("secure", "revoke", name) in RESERVED:
                raise check.refuse("secure", "revoke", "not be hub or observer: use --rotate", name)
            if name not in old.users and not files.was_user(folder, name):
                raise _unknown("revoke", old, name)
        new = old._replace(
            runs={name: given for name, given in old.runs.items() if name not in names},
            observers={name: given for name, given in old.observers.items() if name not in names},
            former_runs=old.all_runs,
        ).with_accounts()
        paths = files.complete(folder, old) + files.update(folder, new)
        paths += [path for name in names for path in files.set_aside(folder, name)]
        change = _change(paths, old, new)
        return change._replace(server=change.server or RELOAD)  # a call may have been interrupted


def rotate(folder: Path, names: Sequence[str]) -> Change:
    """Gives users a new key: the hub, the observer, or others."""
    with record.locked(folder) as old:
        for name in names:
            if name not in old.users:
                raise _unknown("rotate", old, name)
        paths = files.complete(folder, old)
        keys = {name: key for name, key in old.keys.items() if name not in names}
        return _changed(folder, old, old._replace(keys=keys), paths)


def renew(folder: Path, days: int | None = None) -> Change:
    """Signs a new certificate of the server, and of the authority if it ends within a year."""
    _check(None, None, None, days)
    valid = days or certificates.DAYS
    with record.locked(folder) as setup:
        paths = files.complete(folder, setup)
        left, note = certificates.days_left(files.read(folder / "ca.pem")), None
        if left < SOON:
            paths += files.renew_authority(folder, setup, valid)
            note = f"The authority is renewed too: give all users their new files within {max(left, 0)} days."
        paths.append(files.sign(folder, setup, valid))
        paths += files.update(folder, setup)
        return _change(paths, setup, setup)._replace(note=note)


def _changed(folder: Path, old: Setup, new: Setup, paths: list[Path]) -> Change:
    paths = paths + files.update(folder, new)
    if not paths:
        raise MainstemError(f"{folder}: holds a set-up with all of this already: it is left alone")
    return _change(paths, old, new)


def _change(paths: Sequence[Path], old: Setup, new: Setup) -> Change:
    """What was written, and what the server needs.

    A reload changes no port and no address. It does not link the services of an account that is new to the server
    (nats-server 2.15); a second one does.
    """
    names, needed = {path.name for path in paths}, None
    if names & {"listen.conf", "server.conf"}:
        needed = RESTART
    elif set(new.accounts.values()) - {*old.accounts.values(), *old.spare}:
        needed = RELOAD_TWICE
    elif names & {"accounts.conf", "server.pem"}:
        needed = RELOAD
    return Change(list(dict.fromkeys(paths)), needed)


def _with_accounts(setup: Setup, parameter: str) -> Setup:
    """The set-up in which every user has an account; their names must differ."""
    names = [name.lower() for name in setup.users]
    twice = [name for name in setup.users if names.count(name.lower()) > 1]
    if twice:
        wanted = "differ from all others, not by upper and lower case alone"
        raise check.refuse("secure", parameter, wanted, twice[-1])
    return setup.with_accounts()


def _unknown(parameter: str, setup: Setup, name: str) -> MainstemError:
    return check.refuse("secure", parameter, f"be one of {', '.join(setup.users)}", name)


def _check(
    hosts: Sequence[str] | None, port: int | None, bind: str | None, days: int | None
) -> None:
    if hosts is not None and (isinstance(hosts, str) or not hosts):
        raise check.refuse("secure", "hosts", "be a list of names or addresses", hosts)
    for name in hosts or ():
        certificates.host("secure", "hosts", name)
    if port is not None:
        check.integer("secure", "port", port, least=1, most=65535)
    if bind is not None:
        certificates.address("secure", "bind", bind)
    if days is not None:
        check.integer("secure", "days", days, least=1, most=36500)
