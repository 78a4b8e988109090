"""NATS accounts and permissions: who may publish and subscribe to what.

Every user has an account of its own, which imports only the subjects that the user needs. Permissions alone are
not enough: the server replies to whatever subject a request names, and does not check whether the sender may
publish there. Within one account a client could have the acknowledgement of its upload written over the hub's
state.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from mainstem.engines.federate.protocol.subjects import Subjects

HUB, OBSERVER = "hub", "observer"
RESERVED = (HUB, OBSERVER)  # names that no client may have
DIRECT = "$JS.API.DIRECT.GET"
STREAMS = "$JS.API.STREAM.NAMES"
ELSEWHERE = (
    "$JS.hub.API.STREAM.NAMES"  # the observer's name for it: the plain one asks its own account
)


def inbox(name: str) -> str:
    """The prefix of the subjects at which `name` receives replies."""
    return f"_INBOX_{name}"


def accounts(keys: Mapping[str, str], roster: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The accounts of the server, from the public keys of all users and the runs of each client."""
    runs = list(dict.fromkeys(run for given in roster.values() for run in given))
    return {
        HUB: _hub(keys[HUB], runs),
        OBSERVER: _observer(keys[OBSERVER], runs),
        **{name: _client(name, keys[name], given) for name, given in roster.items()},
    }


def _hub(key: str, runs: Sequence[str]) -> dict[str, Any]:
    """The hub may use everything. `$JS.FC` is the flow control of its upload consumer."""
    publish = ["ms.>", "$JS.API.>", "$JS.FC.>", "$KV.>", f"{inbox(HUB)}.>"]
    each = map(Subjects, runs)
    exports = [export for subjects in each for export in _exports(subjects)]
    return {
        "jetstream": "enabled",
        "users": [_user(key, publish, ["ms.>", f"{inbox(HUB)}.>"])],
        "exports": [*exports, {"stream": "ms.*.status"}, {"service": STREAMS}],
    }


def _exports(subjects: Subjects) -> list[dict[str, Any]]:
    return [
        {"service": subjects.upload("*")},
        {"service": subjects.heartbeat("*")},
        {"service": f"{DIRECT}.{subjects.broadcast_stream}.>"},
        *({"stream": subject} for subject in _received(subjects, "*")),
    ]


def _received(subjects: Subjects, client: str) -> list[str]:
    """The subjects that a client subscribes to."""
    return [
        subjects.broadcast("*"),
        subjects.candidate("*"),
        subjects.hub_heartbeat,
        subjects.refusals(client),
    ]


def _client(name: str, key: str, runs: Sequence[str]) -> dict[str, Any]:
    """A client may publish uploads and heartbeats, and receive broadcasts, the document and its refusals."""
    services, streams = [], []
    for subjects in map(Subjects, runs):
        latest = f"{DIRECT}.{subjects.broadcast_stream}"
        services += [subjects.upload(name), subjects.heartbeat(name)]
        stored = (subjects.broadcast("*"), subjects.candidate("*"), subjects.document)
        services += [f"{latest}.{subject}" for subject in stored]
        streams += _received(subjects, name)
    return {
        "users": [_user(key, services, [*streams, f"{inbox(name)}.>"])],
        "imports": [*map(_service, services), *map(_stream, streams)],
        "limits": _limits(len(runs)),
    }


def _observer(key: str, runs: Sequence[str]) -> dict[str, Any]:
    """The observer may list runs and read their status and document. It changes nothing."""
    services = [
        f"{DIRECT}.{subjects.broadcast_stream}.{subject}"
        for subjects in map(Subjects, runs)
        for subject in (subjects.status, subjects.document)
    ]
    publish = [*services, STREAMS, ELSEWHERE]
    listed = _service(STREAMS) | {"to": ELSEWHERE}
    return {
        "users": [_user(key, publish, ["ms.*.status", f"{inbox(OBSERVER)}.>"])],
        "imports": [*map(_service, services), listed, _stream("ms.*.status")],
        "limits": _limits(len(runs)),
    }


def _limits(runs: int) -> dict[str, int]:
    """What a user of so many runs needs, several times over: old connections may linger when it reconnects."""
    return {"max_connections": 8 + 4 * runs, "max_subscriptions": 200 + 50 * runs}


def _user(key: str, publish: Sequence[str], subscribe: Sequence[str]) -> dict[str, Any]:
    return {"nkey": key, "permissions": {"publish": [*publish], "subscribe": [*subscribe]}}


def _service(subject: str) -> dict[str, Any]:
    return {"service": {"account": HUB, "subject": subject}}


def _stream(subject: str) -> dict[str, Any]:
    return {"stream": {"account": HUB, "subject": subject}}
