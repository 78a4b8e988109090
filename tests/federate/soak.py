"""Clients come and go for a long time: `python -m tests.federate.soak MINUTES [FOLDER]`, or `make soak`.

A hub on its private NATS server at the free pace, and client processes that join, learn, leave, join again, and
are killed at random. Watched: does the hub merge while clients are there, does anything grow without end (memory
and open files of the hub, memory and disk of the NATS server), and is anything merged twice.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tests.federate.processes import Federation

CLIENTS = 5
STUCK = 15.0  # seconds within which a merge must come
START = 120  # seconds for the processes to start, on a busy machine
INTERVAL = 5.0  # seconds between two measurements
CONTENT = {
    "problem": {"name": "softmax", "features": 64, "classes": 10},
    "algorithm": {
        "name": "ofediq",
        "step": 0.1,
        "rate": 0.9,
        "period": 4,
        "levels": 3,
        "blocks": 14,
    },
    "stream": {"name": "digits", "clients": CLIENTS},
    "federate": {"run": "soak", "clients": CLIENTS, "deadline": 0.2, "dtype": "float32"},
}


class Seen(NamedTuple):
    """The measurements at one moment."""

    minute: float
    merges: int
    memory: float  # of the hub, in MB
    files: int  # that it has open
    nats_server: float  # memory, in MB
    disk: float  # of the NATS server, in MB
    refused: int

    def line(self) -> str:
        named = (f"{name} {value:.6g}" for name, value in self._asdict().items())
        return ", ".join(named)


class Soak:
    """The processes, and their measurements."""

    def __init__(self, folder: Path):
        self.run = Federation(folder, CONTENT)
        self.seen: list[Seen] = []
        self.joins = self.kills = 0
        self._draw = random.Random(0)
        self._clients: dict[str, subprocess.Popen] = {}
        self._end: dict[str, float] = {}  # when each client is killed
        self._merges = folder / "hub" / "merges.jsonl"

    def live(self, minutes: float) -> None:
        """Runs for so many minutes; raises if a round gets stuck."""
        self.hub = self.run.hub()
        began = moved = measured = time.monotonic()
        merges = 0
        while (now := time.monotonic()) < began + 60 * minutes:
            self._come_and_go(now)
            time.sleep(0.2)
            if now - measured < INTERVAL:
                continue
            measured = now
            self.seen.append(self._measure((now - began) / 60))
            print(self.seen[-1].line(), flush=True)
            if self.seen[-1].merges > merges:
                merges, moved = self.seen[-1].merges, now
            assert now - moved < STUCK + START * (merges == 0), "no merge came: a round is stuck"

    def _come_and_go(self, now: float) -> None:
        for k in range(CLIENTS):
            name = str(k)
            process = self._clients.get(name)
            if process is None or process.poll() is not None:
                assert process is None or process.returncode in (0, -9), f"client {name} failed"
                if self._draw.random() < 0.1:
                    self._clients[name] = self._joined(name)
                    self._end[name] = now + self._draw.uniform(20, 150)
                    self.joins += 1
            elif now > self._end[name]:
                process.kill()
                process.wait()
                self.kills += 1

    def _joined(self, name: str) -> subprocess.Popen:
        folder = str(self.run.folder / f"client-{name}")
        words = ("tests.federate.returning_client", str(self.run.file), self.run.url, name, folder)
        return self.run.start(*words, log=f"client-{name}.log")

    def _measure(self, minute: float) -> Seen:
        status = self._status()
        process = Path("/proc") / str(self.hub.pid)
        server = self._server()
        stored = (self.run.folder / "hub" / "nats-server").rglob("*")
        refused = sum(sum(each["refused"].values()) for each in status["clients"].values())
        return Seen(
            round(minute, 2),
            status["version"],
            memory(self.hub.pid),
            len(list((process / "fd").iterdir())),
            memory(server),
            round(sum(size(file) for file in stored) / 1e6, 2),
            refused,
        )

    def _status(self) -> dict:
        lines = (self.run.folder / "hub.log").read_text().splitlines()
        return json.loads(next(line for line in reversed(lines) if '"version"' in line))

    def _server(self) -> int:
        """The NATS server's process: a grandchild of the hub."""
        pid = self.hub.pid
        for _ in range(2):
            pid = int(
                (Path("/proc") / str(pid) / "task" / str(pid) / "children").read_text().split()[0]
            )
        return pid

    def check(self) -> dict[str, float]:
        """Checks that nothing was merged twice, and that nothing grew from the second quarter to the last."""
        counted = Counter(
            (client, step)
            for line in self._merges.read_text().splitlines()
            for client, step, _ in json.loads(line)["uploads"]
        )
        twice = [key for key, count in counted.items() if count > 1]
        assert not twice, f"merged twice: {twice[:5]}"
        quarter = len(self.seen) // 4
        before, after = self.seen[quarter : 2 * quarter], self.seen[-quarter:]
        grown = {
            name: mean(after, name) - mean(before, name)
            for name in ("memory", "files", "nats_server", "disk")
        }
        assert grown["memory"] < 20, grown
        assert grown["files"] < 5, grown
        assert grown["nats_server"] < 40, grown
        assert grown["disk"] < 40, grown
        totals = {"merges": self.seen[-1].merges, "uploads": len(counted), "joins": self.joins}
        return (
            totals
            | {"kills": self.kills}
            | {f"grown {name}": round(x, 2) for name, x in grown.items()}
        )


def mean(seen: list[Seen], name: str) -> float:
    return sum(getattr(each, name) for each in seen) / len(seen)


def memory(pid: int) -> float:
    """Resident size, in MB."""
    for line in (Path("/proc") / str(pid) / "status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1000
    raise RuntimeError(f"process {pid} is gone")


def size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def main(minutes: float, folder: Path) -> dict[str, float]:
    soak = Soak(folder)
    try:
        soak.live(minutes)
        return soak.check()
    finally:
        soak.run.stop()


if __name__ == "__main__":
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(tempfile.mkdtemp())
    print(main(float(sys.argv[1]), folder))
