"""A live run whose roster and rules change at random, with kills in between: nothing is lost or merged twice."""

import asyncio
import itertools
import json
import random
import signal
import time
from collections import Counter

import pytest

from mainstem.engines.federate import control
from mainstem.errors import MainstemError
from tests.federate.clusters import STORED, Server, ports

pytestmark = pytest.mark.slow  # real processes

CHANGES = 50
CONTENT = {
    "problem": {"name": "linear", "features": 2, "intercept": False},
    "algorithm": {"name": "fedogd", "step": 0.01},
    "federate": {
        "run": "changing",
        "clients": ["c0", "c1", "c2"],
        "deadline": 0.2,
        "staleness": 10**5,
        "checkpoint_every": 5,
    },
}
RULES = {
    "federate.deadline": ("0.05", "0.2", "0.5"),
    "federate.gather": ("2", "3"),
    "federate.quorum": ("1", "2"),
    "federate.staleness": ("50000", "100000"),
    "federate.pending": ("4", "8", "16"),
    "federate.strikes": ("10", "20"),
    "federate.steps": ("100000", "200000"),
    "algorithm.step": ("0.005", "0.01", "0.02"),
}


class Operator:
    """Somebody who changes a run."""

    def __init__(self, made, server):
        self.made, self.server, self.draw = made, server, random.Random(7)
        self.fresh = (f"c{n}" for n in itertools.count(3))
        self.folders = {}  # of each client that takes part, by its name
        self.people = {}  # the folder of each name that there ever was
        self.removed = set()  # folders
        self.running = {}
        self.hub = self._hub()
        for name in CONTENT["federate"]["clients"]:
            self.start(name, made.folder / f"site-{name}")

    def _hub(self):
        return self.made.hub("--url", self.server.url)

    def start(self, name, folder):
        self.folders[name] = self.people[name] = folder
        words = ("tests.federate.changing_client", self.server.url, "changing", name, str(folder))
        self.running[name] = self.made.start(*words, log=f"{folder.name}.log")

    def order(self, name, **given):
        end = time.monotonic() + 60
        while True:
            try:
                return asyncio.run(control.send_order(self.server.url, "changing", name, **given))
            except MainstemError as error:
                if "no hub answers" not in str(error) or time.monotonic() > end:
                    raise
                time.sleep(0.5)

    # --- changes -----------------------------------------------------------------------------------

    def add(self):
        name = next(self.fresh)
        self.order("change", add=[name])
        self.start(name, self.made.folder / f"site-{name}")

    def remove(self):
        if len(self.folders) > 3:
            name = self.draw.choice(sorted(self.folders))
            self.order("change", remove=[name])
            self.removed.add(self.folders.pop(name))
            assert self.running.pop(name).wait(60) == 0  # it is notified

    def rename(self):
        old, new = self.draw.choice(sorted(self.folders)), next(self.fresh)
        self.order("change", rename={old: new})
        assert self.running.pop(old).wait(60) == 0
        self.start(new, self.folders.pop(old))

    def rule(self):
        key = self.draw.choice(sorted(RULES))
        self.order("change", set=[f"{key}={self.draw.choice(RULES[key])}"])

    def refused(self):
        with pytest.raises(MainstemError, match="cannot change while the run lives"):
            self.order("change", set=["problem.features=3"])

    def back(self):
        known = self.order("pause")["checkpoints"]
        if known:
            self.order("back", merge=self.draw.choice(known))
        self.order("resume")

    def kill_hub(self):
        self.hub.kill()
        self.hub.wait()
        self.hub = self._hub()

    def kill_client(self):
        name = self.draw.choice(sorted(self.running))
        self.running[name].kill()
        self.running[name].wait()
        self.start(name, self.folders[name])


def test_fifty_changes(processes, tmp_path):
    server = Server(tmp_path / "server", "one", *ports(1), STORED)
    made = processes(CONTENT | {"stream": {}})
    try:
        operator = Operator(made, server)
        ways = [operator.add, operator.remove, operator.rename, operator.refused, operator.back]
        ways += [operator.rule] * 3 + [operator.kill_hub, operator.kill_client]
        for n in range(CHANGES):
            ways[n % len(ways)]()
            time.sleep(operator.draw.uniform(0, 1.0))
        _ended(operator)
    finally:
        server.kill()


def _ended(operator):
    operator.order("change", set=["federate.quorum=1", "federate.gather=1"])  # nobody will be there
    for process in operator.running.values():
        process.send_signal(signal.SIGTERM)
    codes = {process.wait(30) for process in operator.running.values()}
    assert codes <= {0, -signal.SIGTERM}  # the latter: it had only just been started
    end = time.monotonic() + 60
    while _missing(operator):
        assert time.monotonic() < end, _missing(operator)
        time.sleep(0.5)
    operator.order("finish")
    assert operator.hub.wait(30) == 0
    merged = _merged(operator)
    assert set(merged.values()) == {1}  # nothing is merged twice
    lines = _log(operator)
    versions = [line["version"] for line in lines if "uploads" in line or "back" in line]
    assert versions == list(range(1, len(versions) + 1))
    changes = [line["revision"] for line in lines if "changed" in line]
    assert changes == list(range(1, len(changes) + 1))
    assert len(changes) > CHANGES / 2


def _log(operator):
    text = (operator.made.folder / "hub" / "merges.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def _merged(operator):
    """How often each step of each folder was merged or dropped."""
    lines = _log(operator)  # those that wait when the run goes back are dropped, and in the log
    entered = [each for line in lines for each in line.get("uploads", line.get("dropped", []))]
    return Counter((operator.people[name], step) for name, step, _ in entered)


def _missing(operator):
    """What clients that were not removed have sent, and is not merged."""
    merged, missing = _merged(operator), []
    for folder in set(operator.folders.values()):
        sent = {int(line) for line in folder.with_suffix(".sent").read_text().split()}
        missing += [(folder.name, step) for step in sent if (folder, step) not in merged]
    return missing
