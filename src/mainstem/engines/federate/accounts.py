"""Who may say and hear what on the broker.

Every user has an account of its own, and what leaves it is what its imports name. Permissions alone would not
do: the server answers a request at whatever subject the request names, without asking whether its sender may
publish there. Within one account a client could have the receipt of its upload written over the hub's state.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from mainstem.engines.federate.names import Names

HUB, OBSERVER = "hub", "observer"
RESERVED = (HUB, OBSERVER)  # no client may be called so
DIRECT = "$JS.API.DIRECT.GET"
STREAMS = "$JS.API.STREAM.NAMES"
ELSEWHERE = (
    "$JS.hub.API.STREAM.NAMES"  # what the observer calls it: the plain name asks its own account
)


def inbox(name: str) -> str:
    """Where answers to `name` go."""
    return f"_INBOX_{name}"


def accounts(keys: Mapping[str, str], roster: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The server's accounts, from everybody's public key and the runs of every client."""
    runs = list(dict.fromkeys(run for given in roster.values() for run in given))
    return {
        HUB: _hub(keys[HUB], runs),
        OBSERVER: _observer(keys[OBSERVER], runs),
        **{name: _client(name, keys[name], given) for name, given in roster.items()},
    }


def _hub(key: str, runs: Sequence[str]) -> dict[str, Any]:
    """All of it: `$JS.FC` is how its reading of the uploads is kept in flow."""
    publish = ["ms.>", "$JS.API.>", "$JS.FC.>", "$KV.>", f"{inbox(HUB)}.>"]
    each = map(Names, runs)
    exports = [export for names in each for export in _exports(names)]
    return {
        "jetstream": "enabled",
        "users": [_user(key, publish, ["ms.>", f"{inbox(HUB)}.>"])],
        "exports": [*exports, {"stream": "ms.*.status"}, {"service": STREAMS}],
    }


def _exports(names: Names) -> list[dict[str, Any]]:
    return [
        {"service": names.up("*")},
        {"service": names.here("*")},
        {"service": f"{DIRECT}.{names.broadcasts}.>"},
        *({"stream": subject} for subject in _said(names, "*")),
    ]


def _said(names: Names, client: str) -> list[str]:
    """What a client hears of a run."""
    return [names.model("*"), names.candidate("*"), names.pulse, names.refusals(client)]


def _client(name: str, key: str, runs: Sequence[str]) -> dict[str, Any]:
    """Its own uploads and signs of life go out; the model, the spec and what is said to it come in."""
    services, streams = [], []
    for names in map(Names, runs):
        latest = f"{DIRECT}.{names.broadcasts}"
        services += [names.up(name), names.here(name)]
        stored = (names.model("*"), names.candidate("*"), names.spec)
        services += [f"{latest}.{subject}" for subject in stored]
        streams += _said(names, name)
    return {
        "users": [_user(key, services, [*streams, f"{inbox(name)}.>"])],
        "imports": [*map(_service, services), *map(_stream, streams)],
    }


def _observer(key: str, runs: Sequence[str]) -> dict[str, Any]:
    """It sees which runs there are and how they go, and moves nothing."""
    services = [
        f"{DIRECT}.{names.broadcasts}.{subject}"
        for names in map(Names, runs)
        for subject in (names.status, names.spec)
    ]
    publish = [*services, STREAMS, ELSEWHERE]
    listed = _service(STREAMS) | {"to": ELSEWHERE}
    return {
        "users": [_user(key, publish, ["ms.*.status", f"{inbox(OBSERVER)}.>"])],
        "imports": [*map(_service, services), listed, _stream("ms.*.status")],
    }


def _user(key: str, publish: Sequence[str], subscribe: Sequence[str]) -> dict[str, Any]:
    return {"nkey": key, "permissions": {"publish": [*publish], "subscribe": [*subscribe]}}


def _service(subject: str) -> dict[str, Any]:
    return {"service": {"account": HUB, "subject": subject}}


def _stream(subject: str) -> dict[str, Any]:
    return {"stream": {"account": HUB, "subject": subject}}
