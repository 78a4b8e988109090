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


Runs = Mapping[str, Sequence[str]]  # of each user


def accounts(
    keys: Mapping[str, str],
    clients: Runs,
    observers: Runs,
    *,
    names: Mapping[str, str],
    runs: Sequence[str],
) -> dict[str, Any]:
    """The accounts of the server: of the hub, of the observer of all `runs`, and of each user of some.

    `names` has the account of each user. It is not the user's own name: an account that is known to the server
    before it has a user needs one reload only.
    """
    return {
        HUB: _hub(keys[HUB], runs),
        OBSERVER: _observer_of_all(keys[OBSERVER], runs),
        **{names[name]: _client(name, keys[name], given) for name, given in clients.items()},
        **{names[name]: _observer(name, keys[name], given) for name, given in observers.items()},
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
        {"service": f"{DIRECT}.{subjects.timeline_stream}.>"},
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


def _observer_of_all(key: str, runs: Sequence[str]) -> dict[str, Any]:
    """This observer may list runs, also later ones, and read their status and document. It changes nothing."""
    services = _observed(runs)
    publish = [*services, STREAMS, ELSEWHERE]
    listed = _service(STREAMS) | {"to": ELSEWHERE}
    return {
        "users": [_user(key, publish, ["ms.*.status", f"{inbox(OBSERVER)}.>"])],
        "imports": [*map(_service, services), listed, _stream("ms.*.status")],
        "limits": _limits(len(runs)),
    }


def _observer(name: str, key: str, runs: Sequence[str]) -> dict[str, Any]:
    """This observer may read the status and the document of its runs, and lists none."""
    services, streams = _observed(runs), [Subjects(run).status for run in runs]
    return {
        "users": [_user(key, services, [*streams, f"{inbox(name)}.>"])],
        "imports": [*map(_service, services), *map(_stream, streams)],
        "limits": _limits(len(runs)),
    }


def _observed(runs: Sequence[str]) -> list[str]:
    """The subjects at which the status, the document and the timeline of runs are read."""
    return [
        f"{DIRECT}.{stream}.{subject}"
        for subjects in map(Subjects, runs)
        for stream, subject in (
            (subjects.broadcast_stream, subjects.status),
            (subjects.broadcast_stream, subjects.document),
            (subjects.timeline_stream, subjects.moment("*", "*")),
        )
    ]


def _limits(runs: int) -> dict[str, int]:
    """What a user of so many runs needs, several times over: old connections may linger when it reconnects."""
    return {"max_connections": 8 + 4 * runs, "max_subscriptions": 200 + 50 * runs}


def _user(key: str, publish: Sequence[str], subscribe: Sequence[str]) -> dict[str, Any]:
    return {"nkey": key, "permissions": {"publish": [*publish], "subscribe": [*subscribe]}}


def _service(subject: str) -> dict[str, Any]:
    return {"service": {"account": HUB, "subject": subject}}


def _stream(subject: str) -> dict[str, Any]:
    return {"stream": {"account": HUB, "subject": subject}}
