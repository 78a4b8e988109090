"""Summarises a set-up: its users and their runs, and how long the certificates are valid."""

from pathlib import Path
from typing import Any

from mainstem.engines.federate.security import certificates, record
from mainstem.engines.federate.security.permissions import HUB, OBSERVER

CERTIFICATES = {"server": "server.pem", "authority": "ca.pem"}


def summary(folder: Path) -> dict[str, Any]:
    """The set-up in a folder, as JSON can represent it. Nothing in it is secret."""
    setup = record.present(folder)
    users = [
        *((name, "client", given) for name, given in setup.runs.items()),
        *((name, "observer", given) for name, given in setup.observers.items()),
    ]
    everybody = [(HUB, "hub", setup.all_runs), (OBSERVER, "observer", setup.all_runs), *users]
    return {
        "url": setup.url,
        "hosts": setup.hosts,
        "port": setup.port,
        "bind": setup.bind,
        "users": [
            {"name": name, "role": role, "runs": given, "key": setup.keys[name]}
            for name, role, given in everybody
        ],
        "certificates": {who: _valid(folder / name) for who, name in CERTIFICATES.items()},
    }


def known_runs(folder: Path) -> list[str]:
    """The runs of a set-up; none if there is no set-up yet."""
    return record.present(folder).all_runs if (folder / record.FILE).is_file() else []


def _valid(path: Path) -> dict[str, Any] | None:
    """How long a certificate is valid; None if it is not in the folder."""
    if not path.is_file():
        return None
    text = path.read_text()
    return {
        "until": certificates.until(text).isoformat(),
        "days_left": certificates.days_left(text),
    }
