"""Versions that hub and clients state, and the rule by which they are compatible.

- PROTOCOL: messages and stored states. It must be the same.
- ALGORITHMS: what the package's algorithms and parts compute. It must be the same, or two sites would compute
  different things under one name. It is raised with each change of their numbers.
- Packages that algorithms or problems of the run come from: their first two numbers must be the same.
- The version of mainstem itself is shown, and decides nothing.
"""

from collections.abc import Mapping
from importlib import metadata
from typing import Any

from mainstem.errors import MainstemError

PROTOCOL = 7  # 5: sessions, revisions, versions; 6: heartbeats tell a lost merge; 7: learning alone
ALGORITHMS = 1
NAMES = ("protocol", "algorithms", "mainstem", "packages")


def versions(packages: Mapping[str, str]) -> dict[str, Any]:
    """What a hub or a client states; `packages`: those that the run needs besides mainstem."""
    return {
        "protocol": PROTOCOL,
        "algorithms": ALGORITHMS,
        "mainstem": metadata.version("mainstem"),
        "packages": dict(packages),
    }


def incompatible(hub: Mapping[str, Any], client: Mapping[str, Any]) -> str | None:
    """Why a client of one set of versions cannot take part in a run of another; None if it can.

    >>> incompatible({"protocol": 5, "algorithms": 1, "mainstem": "0.2.0"}, {"protocol": 4, "mainstem": "0.1.0"})
    'the hub has mainstem 0.2.0 (protocol 5), the client has mainstem 0.1.0 (protocol 4)'
    """
    for name in ("protocol", "algorithms"):
        if hub.get(name) != client.get(name):
            both = (
                f"{each.get('mainstem', '?')} ({name} {each.get(name, '?')})"
                for each in (hub, client)
            )
            return "the hub has mainstem {}, the client has mainstem {}".format(*both)
    theirs = _packages(client)
    for package, wanted in _packages(hub).items():
        found = theirs.get(package)
        if found is None or _first_two(found) != _first_two(wanted):
            return f"the hub has {package} {wanted}, the client has {found or 'none'}"
    return None


def _packages(versions: Mapping[str, Any]) -> Mapping[str, Any]:
    """The versions of packages with plugins, as far as they can be read: a message may contain anything."""
    found = versions.get("packages")
    return found if isinstance(found, dict) else {}


def _first_two(version: Any) -> list[str]:
    return str(version).split(".")[:2]


class Incompatible(MainstemError):
    """A client is not compatible with its hub."""

    def __init__(self, run: str, reason: str):
        super().__init__(f"{run}: {reason}: install the hub's version")
