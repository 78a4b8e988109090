"""Federated runs on the live page: a status that cannot be read is shown as such, and breaks nothing."""

import asyncio
import json
import time
from types import SimpleNamespace

import pytest

from mainstem.dashboard.federation import Federation
from mainstem.engines.federate.control import Observer, _status
from mainstem.engines.federate.protocol import timeline
from mainstem.engines.federate.protocol.timeline import Timeline
from mainstem.errors import MainstemError
from mainstem.report import finite_json
from tests.dashboard.statuses import CLIENT, MERGE, STATUS

LARGE = 10**400  # larger than any float


def nested(depth=3000):
    found = []
    for _ in range(depth):
        found = [found]
    return found


class Server:
    """What an observer reads, without a server."""

    def __init__(self, *statuses):
        self.found, self.kept = list(statuses), Timeline()

    async def statuses(self):
        if isinstance(self.found, Exception):
            raise self.found
        return [*self.found]

    async def timeline(self, run):
        return self.kept

    async def close(self):
        pass


def followed(server):
    """A federation after three looks, whose page has asked for all its runs."""
    found = Federation("nats://127.0.0.1:1", None, None)
    found._orders = True
    for _ in range(3):
        asyncio.run(found._read(server))
        for row in found.rows():
            found.whole(row["run"], [])
    return found


def other(changes):
    return STATUS | {"run": "other"} | changes


WRONG = [
    *({name: LARGE} for name in ("bytes_down", "version", "rounds_per_second")),
    *({name: "x"} for name in ("clients", "version", "rounds_per_second", "waiting", "merges")),
    {"checkpoints": 3},
    {"alarms": [3]},
    {"candidate": 3},
    {"alone": 3},
    {"merges": [MERGE]},
    {"merges": [MERGE | {"stopped": [], "waited": None}]},
    {"merges": [MERGE | {"stopped": nested()}]},
    {"checkpoints": [nested()]},
    *({"clients": {"a": CLIENT | {name: nested()}}} for name in ("state", "norm", "uploads")),
    {"clients": {"a": CLIENT | {"norm": LARGE}}},
    {"clients": {"a": CLIENT | {"refused": {"stale": "x"}}}},
    {"clients": {"a": CLIENT | {"strikes": "x"}}},
    {"clients": {"a": CLIENT | {"alone": {"gain": "x"}}}},
]


@pytest.mark.parametrize("name", sorted({*STATUS} - {"run"}))
def test_a_status_that_lacks_something_is_unreadable(name):
    lacks = {key: value for key, value in other({}).items() if key != name}
    check(lacks)


@pytest.mark.parametrize("changes", WRONG, ids=lambda changes: next(iter(changes)))
def test_a_status_with_something_else_is_unreadable(changes):
    check(other(changes))


def check(status):
    """Shows a status that cannot be read beside one that can."""
    found = followed(Server(STATUS, status))
    fine, odd = found.rows()
    assert (fine["run"], fine["state"], fine["at"], fine["sites"]) == (
        *("fine", "running", "merge 2"),
        "1 of 1",
    )
    assert (odd["run"], odd["state"]) == ("other", "cannot be read")
    shown = found.whole("other", [])
    assert ["why", "its status is of another version"] in shown["facts"]
    assert shown["orders"] == []
    assert found.latest("other", [], 1.0)["facts"] == shown["facts"]
    asyncio.run(found._read(Server(STATUS, status)))
    assert found.latest("other", [], shown["revision"]) is None  # nothing has changed
    for name in ("fine", "other"):
        for content in (found.whole(name, ["a"]), found.latest(name, ["a"], 0.0), found.rows()):
            finite_json.dumps(content)
    assert "point" in found.latest("fine", [], 1e9)


def test_a_status_of_an_earlier_hub_is_read():
    """It knows no models that are learnt alone."""
    found = followed(Server(STATUS, other({})))
    assert "gain" not in found.whole("other", [])["sites"]
    alone = {"a": CLIENT | {"alone": {"gain": 0.25}}, "b": CLIENT | {"alone": None}}
    found = followed(Server(STATUS, other({"clients": alone})))
    assert found.whole("other", [])["sites"]["gain"] == [0.25, None]


def test_counts_whose_sum_is_larger_than_any_float_break_nothing():
    large = CLIENT | {"bytes_up": 10**308}
    found = followed(Server(STATUS | {"clients": {str(n): large for n in range(3)}}))
    finite_json.dumps([found.whole("fine", []), found.latest("fine", [], 1e9)])


def test_a_status_that_can_be_read_again_is_shown_again():
    server = Server(STATUS)
    found = followed(server)
    server.found = [STATUS | {"version": None}]
    asyncio.run(found._read(server))
    assert found.rows()[0]["state"] == "cannot be read"
    server.found = [STATUS | {"time": 1e9 + 1}]
    asyncio.run(found._read(server))
    assert found.rows()[0]["state"] == "running"
    assert found.latest("fine", [], 1e9 + 1)["point"]["time"] == 1e9 + 1


def test_a_page_of_a_run_that_could_not_be_read_is_right_whatever_the_clock_of_the_hub():
    behind = time.time() - 3600
    server = Server(STATUS | {"time": behind, "version": None})
    found = followed(server)
    seen = found.whole("fine", [])["revision"]
    server.found = [STATUS | {"time": behind + 1}]
    asyncio.run(found._read(server))
    shown = found.latest("fine", [], seen)
    assert dict(shown["facts"])["state"] == "running"
    assert "charts" in shown


def test_a_part_of_a_timeline_adds_to_what_is_known_and_is_read_again():
    server = Server(STATUS)
    for second in range(5):
        server.kept.add(timeline.moment(STATUS | {"time": 1e9 - 5 + second}))
    found = followed(server)
    run, whole = found._runs["fine"], server.kept
    known = found.whole("fine", [])["charts"][0]["x"]["values"]
    assert len(known) == 6
    server.kept, run.outdated = Timeline(whole=False), True
    server.kept.put((1, 0), timeline.moment(STATUS | {"time": 1e9 - 5}))
    asyncio.run(found._read(server))
    assert found.whole("fine", [])["charts"][0]["x"]["values"] == known
    assert run.outdated
    server.kept = whole
    asyncio.run(found._read(server))
    assert not run.outdated


def test_a_timeline_that_may_not_be_read_is_asked_for_once():
    server = Server(STATUS)
    server.kept = Timeline(whole=False)
    found = followed(server)
    assert not found._runs["fine"].outdated


def test_a_page_that_was_open_waits_for_the_timeline_of_a_run_that_came_back():
    server = Server(STATUS)
    found = followed(server)
    server.found = []
    asyncio.run(found._read(server))
    server.found = [STATUS]
    asyncio.run(found._read(server))
    assert found.latest("fine", [], 1e9) is None
    asyncio.run(found._read(server))
    assert "charts" in found.latest("fine", [], 0.0)


@pytest.mark.parametrize("data", [f'{{"run": "a", "time": 1{"0" * 400}}}', '{"run": "b"}', "[]"])
def test_what_is_no_status_is_refused(data):
    with pytest.raises(ValueError, match="no status"):
        _status("a", data.encode())


@pytest.mark.parametrize(
    "changes",
    [
        {"norm": ["x"]},
        {"norm": [LARGE]},
        {"time": LARGE},
        {"clients": [3]},
        {"bytes_down": None},
        {"refused": [1]},
        {"states": {"present": "x"}},
        {"candidate": {"samples": 1}},
        {"alone": {"samples": 1}},
    ],
    ids=str,
)
def test_what_is_no_moment_is_refused(changes):
    now = timeline.moment(STATUS)
    assert timeline.unpack(timeline.pack(now)) == now
    with pytest.raises(ValueError, match="no moment"):
        timeline.unpack(json.dumps(now | changes).encode())


def test_after_a_time_without_the_server_the_timeline_is_read_again(monkeypatch):
    """What happened in between is on the server alone."""
    server, looks = Server(STATUS), []
    found = Federation("nats://127.0.0.1:1", None, None)

    async def opened(*_):
        return server

    def changed():
        looks.append(found.problem)
        found.whole("fine", [])
        if len(looks) == 3:
            server.found = MainstemError("it does not answer")
        if len(looks) == 4:
            missed = timeline.moment(STATUS | {"time": 1e9 + 60})
            server.kept = Timeline()
            server.kept.add(missed)
            server.found = [STATUS | {"time": 1e9 + 120}]
        if len(looks) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr("mainstem.dashboard.federation.Observer.open", opened)
    monkeypatch.setattr("mainstem.dashboard.federation.SECOND", 0.01)
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(found.follow(changed))
    assert time.monotonic() - begin < 30
    assert [bool(each) for each in looks] == [False, False, False, True, False]
    shown = found.latest("fine", [], 1e9)  # the page has seen the first status
    assert shown["charts"][0]["x"]["values"] == [1e9 + 60, 1e9 + 120]
    assert "point" in found.latest("fine", [], 1e9 + 120)


def test_what_was_read_of_a_timeline_stays_when_the_rest_does_not_come():
    class Silent:
        """Answers a few times."""

        def __init__(self):
            self.answers = 5

        def jetstream(self, timeout):
            return self

        async def get_msg(self, stream, subject, direct):
            self.answers -= 1
            if self.answers < 0:
                raise TimeoutError
            moment = timeline.moment(STATUS | {"time": 1e9 + self.answers})
            return SimpleNamespace(data=timeline.pack(moment))

    found = asyncio.run(Observer(Silent(), "fine").timeline("fine"))
    assert len(found.moments(1e9 + 4)) == 4  # the first is asked for twice
    assert not found.whole
