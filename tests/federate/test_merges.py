"""What a hub notes of its merges: one line for each that counts, whenever it was killed."""

import asyncio
import json

import numpy as np
import pytest

from mainstem.engines.federate import merges as module
from mainstem.engines.federate.merges import Merges
from tests.federate.together import document, joined, serving, until

LINEAR = {"name": "linear", "features": 2, "intercept": False}
X = np.array([1.0, 2.0], np.float32)


def versions(path):
    return [json.loads(line)["version"] for line in path.read_text().splitlines()]


@pytest.mark.parametrize("torn", [b"", b'{"version":4,"st', b"\xff\n"])
def test_lines_beyond_the_stored_state_are_dropped(torn, tmp_path):
    path = tmp_path / "merges.jsonl"
    log = Merges(path, 0)
    for version in (1, 2, 3):
        log.add({"version": version})
    log.close()
    with path.open("ab") as file:
        file.write(torn)
    log = Merges(path, 2)
    log.add({"version": 3})
    log.close()
    assert versions(path) == [1, 2, 3]


def test_a_full_file_is_put_aside(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "FULL", 40)
    log = Merges(tmp_path / "merges.jsonl", 0)
    for version in range(1, 6):
        log.add({"version": version})
    log.close()
    assert versions(tmp_path / "merges.old.jsonl")[-1] + 1 == versions(tmp_path / "merges.jsonl")[0]


def test_staleness_and_passed_deadlines_are_noted(broker, tmp_path):
    async def lived():
        content = document({"name": "fedogd", "step": 0.1}, LINEAR, deadline=0.2)
        async with (
            serving(broker.url, content, folder=tmp_path) as (hub, _),
            await joined(broker.url, hub, "0") as one,
            await joined(broker.url, hub, "1") as two,
        ):
            await one.learn_one(X, 1.0)  # alone: the deadline passes
            await until(lambda: one.link.latest.version == 1)
            two.link._models.value = None  # has not heard of it
            await two.learn_one(X, 1.0)
            await one.learn_one(X, 1.0)
            await until(lambda: hub.table.merged.tolist() == [2, 1])

    asyncio.run(lived())
    first, second = map(json.loads, (tmp_path / "merges.jsonl").read_text().splitlines())
    assert (first["deadline"], second["deadline"]) == (True, False)
    assert first["waited"] >= 0.2 > second["waited"]
    assert first["uploads"] == [["0", 1, 0]]
    assert second["uploads"] == [["0", 2, 0], ["1", 1, 1]]
