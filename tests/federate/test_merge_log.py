"""The merge log of a hub: one line for each merge that counts, whenever the hub was killed."""

import asyncio
import errno
import json
from types import SimpleNamespace

import numpy as np
import pytest

from mainstem.engines.federate.hub import merge_log as module
from mainstem.engines.federate.hub.history import History
from mainstem.engines.federate.hub.merge_log import MergeLog
from tests.federate.in_process import joined, run_content, serving, until

LINEAR = {"name": "linear", "features": 2, "intercept": False}
X = np.array([1.0, 2.0], np.float32)


def versions(path):
    return [json.loads(line)["version"] for line in path.read_text().splitlines()]


@pytest.mark.parametrize("torn", [b"", b'{"version":4,"st', b"\xff\n"])
def test_lines_beyond_the_stored_state_are_dropped(torn, tmp_path):
    path = tmp_path / "merges.jsonl"
    log = MergeLog(path, 0, 0)
    for version in (1, 2, 3):
        log.add({"version": version, "revision": 0})
    log.close()
    with path.open("ab") as file:
        file.write(torn)
    log = MergeLog(path, 2, 0)
    log.add({"version": 3, "revision": 0})
    log.close()
    assert versions(path) == [1, 2, 3]


def test_what_a_full_disk_has_not_taken_is_written_later(tmp_path, monkeypatch):
    class Aggregator:
        version, step = 0, 0
        document = SimpleNamespace(revision=0, content={})

    full = OSError(errno.ENOSPC, "No space left on device")
    history = History(tmp_path, Aggregator(), 0)
    history.retry()  # nothing to do

    def refused(*_):
        raise full

    with monkeypatch.context() as patched:
        patched.setattr(MergeLog, "flush", refused)
        history.changed("first")
        history.retry()
        assert history.failed is full
    history.retry()
    assert history.failed is None
    assert versions(tmp_path / "merges.jsonl") == [0]
    history.close()


def test_a_full_file_is_put_aside(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_SIZE", 40)
    log = MergeLog(tmp_path / "merges.jsonl", 0, 0)
    for version in range(1, 6):
        log.add({"version": version, "revision": 0})
    log.close()
    assert versions(tmp_path / "merges.old.jsonl")[-1] + 1 == versions(tmp_path / "merges.jsonl")[0]


def test_staleness_and_passed_deadlines_are_noted(nats_server, tmp_path):
    async def lived():
        content = run_content({"name": "fedogd", "step": 0.1}, LINEAR, deadline=0.2)
        async with (
            serving(nats_server.url, content, folder=tmp_path) as (hub, _),
            await joined(nats_server.url, hub, "0") as one,
            await joined(nats_server.url, hub, "1") as two,
        ):
            clients = lambda: hub.status()["clients"].values()  # noqa: E731
            await until(lambda: all(each["state"] == "present" for each in clients()))
            await one.learn_one(X, 1.0)  # alone: the deadline passes
            await until(lambda: one.session.uplink.latest.version == 1)
            two.session.uplink._broadcasts.value = None  # has not received it
            await two.learn_one(X, 1.0)
            await one.learn_one(X, 1.0)
            await until(lambda: hub.aggregator.records.merged.tolist() == [2, 1])

    asyncio.run(lived())
    first, second = map(json.loads, (tmp_path / "merges.jsonl").read_text().splitlines())
    assert (first["deadline"], second["deadline"]) == (True, False)
    assert first["waited"] >= 0.2 > second["waited"]
    assert first["uploads"] == [["0", 1, 0]]
    assert second["uploads"] == [["0", 2, 0], ["1", 1, 1]]
