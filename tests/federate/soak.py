"""A long time with everything that goes wrong: `python -m tests.federate.soak MINUTES [peaceful]`, or `make soak`.

A hub at the free pace, and client processes that join, learn, leave, join again, and are killed at random. One of
them has features with a wrong unit. Every few seconds something happens: a process stands still, connections are
cut, somebody floods the run with the bad client's name, or a client's disk is full. Watched: does the hub merge
while clients are there, does anything grow without end (memory and open files of the hub, memory and disk of the
NATS server), is anything merged twice, and do the honest clients learn. In a peaceful soak nothing goes wrong:
clients join, learn and leave, and the hub must raise no alarm.
"""

import asyncio
import contextlib
import json
import math
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import nats
import nats.errors

from mainstem.engines.federate.protocol.subjects import Subjects
from tests.federate.clusters import STORED, Server, ports
from tests.federate.processes import Federation
from tests.federate.proxy import Proxy

CLIENTS = 6
BAD = CLIENTS - 1  # the client whose features have a wrong unit
UNIT = 1000.0
STUCK = 40.0  # seconds within which a merge must come
PEACE = 5.0, 20.0  # seconds between two faults
LONGEST = 10.0  # seconds for which a process stands still, a flood or a full disk lasts
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
    loss: float  # of the honest clients, since the last measurement

    def line(self) -> str:
        named = (f"{name} {value:.6g}" for name, value in self._asdict().items())
        return ", ".join(named)


class Soak:
    """The processes, what is done to them, and their measurements."""

    def __init__(self, folder: Path, peaceful: bool = False):
        self.run = Federation(folder, CONTENT)
        self.peaceful = peaceful
        self.seen: list[Seen] = []
        self.joins = self.kills = 0
        self.faults: Counter[str] = Counter()
        self._draw = random.Random(0)
        self._server = Server(folder / "server", "one", *ports(1), STORED)
        self._proxies = [
            Proxy(self._server.port) for _ in range(CLIENTS + 1)
        ]  # the last: the hub's
        self._clients: dict[str, subprocess.Popen] = {}
        self._end: dict[str, float] = {}  # when each client is killed
        self._merges = folder / "hub" / "merges.jsonl"
        self._counted = 0.0, 0  # losses and samples of the honest clients, at the last measurement
        self._disk = folder / "client-0"
        self._disk.mkdir(parents=True)
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(self._disk)], check=False
        )
        self._small = mounted.returncode == 0  # whether that disk can be filled: it takes root

    def live(self, minutes: float) -> None:
        """Runs for so many minutes; raises if a round gets stuck."""
        self.hub = self.run.hub("--url", self._proxies[-1].url)
        began = moved = measured = time.monotonic()
        merges, fault = 0, math.inf if self.peaceful else began + START / 4
        while (now := time.monotonic()) < began + 60 * minutes:
            self._come_and_go(now)
            if now > fault:
                self._fault()
                fault = time.monotonic() + self._draw.uniform(*PEACE)
            time.sleep(0.2)
            if now - measured < INTERVAL:
                continue
            measured = now
            self.seen.append(self._measure((now - began) / 60))
            print(self.seen[-1].line(), flush=True)
            if self.seen[-1].merges > merges:
                merges, moved = self.seen[-1].merges, now
            assert now - moved < STUCK + START * (merges == 0), "no merge came: a round is stuck"

    def _fault(self) -> None:
        """Something goes wrong, for a while."""
        kinds = [self._stop, self._cut, self._flood, *[self._fill] * self._small]
        kind = self._draw.choice(kinds)
        self.faults[kind.__name__.strip("_")] += 1
        kind()

    def _stop(self) -> None:
        running = [each for each in self._clients.values() if each.poll() is None]
        process = self._draw.choice([self.hub, self._server.process, *running])
        process.send_signal(signal.SIGSTOP)
        time.sleep(self._draw.uniform(1, LONGEST))
        process.send_signal(signal.SIGCONT)

    def _cut(self) -> None:
        for proxy in self._draw.sample(self._proxies, 3):
            proxy.cut()

    def _flood(self) -> None:
        asyncio.run(flood(self._server.url, self._draw.uniform(1, LONGEST)))

    def _fill(self) -> None:
        filler = self._disk / "filler"
        with contextlib.suppress(OSError), filler.open("wb") as file:
            while True:
                file.write(bytes(4096))
                file.flush()
        time.sleep(self._draw.uniform(1, LONGEST))
        filler.unlink()

    def _come_and_go(self, now: float) -> None:
        for k in range(CLIENTS):
            name = str(k)
            process = self._clients.get(name)
            if process is None or process.poll() is not None:
                assert process is None or process.returncode in (0, -9), f"client {name} failed"
                if self._draw.random() < 0.1:
                    self._clients[name] = self._joined(name)
                    self._end[name] = (
                        math.inf if self.peaceful else now + self._draw.uniform(20, 150)
                    )
                    self.joins += 1
            elif now > self._end[name]:
                process.kill()
                process.wait()
                self.kills += 1

    def _joined(self, name: str) -> subprocess.Popen:
        folder = str(self.run.folder / f"client-{name}")
        url, unit = (
            self._proxies[int(name)].url,
            UNIT if int(name) == BAD and not self.peaceful else 1.0,
        )
        words = (
            "tests.federate.returning_client",
            str(self.run.file),
            url,
            name,
            folder,
            str(unit),
        )
        return self.run.start(*words, log=f"client-{name}.log")

    def _measure(self, minute: float) -> Seen:
        status = self._status()
        assert not (self.peaceful and status["alarms"]), status["alarms"]
        process = Path("/proc") / str(self.hub.pid)
        stored = (self.run.folder / "server").rglob("*")
        refused = sum(sum(each["refused"].values()) for each in status["clients"].values())
        return Seen(
            round(minute, 2),
            status["version"],
            memory(self.hub.pid),
            len(list((process / "fd").iterdir())),
            memory(self._server.process.pid),
            round(sum(size(file) for file in stored) / 1e6, 2),
            refused,
            self._recent_loss(status),
        )

    def _recent_loss(self, status: dict) -> float:
        honest = [status["clients"][str(k)] for k in range(BAD)]
        now = sum(each["loss"] for each in honest), sum(each["samples"] for each in honest)
        loss, samples = now[0] - self._counted[0], now[1] - self._counted[1]
        self._counted = now
        return loss / max(samples, 1)

    def _status(self) -> dict:
        lines = (self.run.folder / "hub.log").read_text().splitlines()
        return json.loads(next(line for line in reversed(lines) if '"version"' in line))

    def stop(self) -> None:
        """Ends everything."""
        for process in self.run.processes:
            process.send_signal(signal.SIGCONT)
        self.run.stop()
        for proxy in self._proxies:
            proxy.stop()
        self._server.kill()
        if self._small:
            subprocess.run(["umount", str(self._disk)], check=False)

    def check(self) -> dict[str, float]:
        """Checks that nothing was merged twice, and that nothing grew from the second quarter to the last."""
        counted = Counter(
            (client, step)
            for line in self._merges.read_text().splitlines()
            for client, step, _ in json.loads(line).get("uploads", [])
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
        learnt = mean(after, "loss") / mean(before, "loss")
        assert learnt < 1.5, f"the honest clients' loss is {learnt:.2f} times what it was"
        totals = {"merges": self.seen[-1].merges, "uploads": len(counted), "joins": self.joins}
        return (
            totals
            | {"kills": self.kills, "loss": round(learnt, 3)}
            | dict(self.faults)
            | {f"grown {name}": round(x, 2) for name, x in grown.items()}
        )


async def flood(url: str, seconds: float) -> None:
    """Sends uploads, chunks and heartbeats of the bad client as fast as it can."""
    run, end = CONTENT["federate"]["run"], time.monotonic() + seconds
    connection = await nats.connect(url)
    subjects = Subjects(run)
    bodies = [os.urandom(500), struct.pack("<4sIII", b"mspc", 1, 0, 2) + bytes(200), b"{}"]
    with contextlib.suppress(nats.errors.Error):
        while time.monotonic() < end:
            for body in bodies:
                await connection.publish(subjects.upload(str(BAD)), body)
            await connection.publish(subjects.heartbeat(str(BAD)), bodies[0])
            if connection.pending_data_size > 2**20:
                await connection.flush()
    await connection.close()


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


def main(minutes: float, folder: Path, peaceful: bool = False) -> dict[str, float]:
    soak = Soak(folder, peaceful)
    try:
        soak.live(minutes)
        return soak.check()
    finally:
        soak.stop()


if __name__ == "__main__":
    print(main(float(sys.argv[1]), Path(tempfile.mkdtemp()), "peaceful" in sys.argv[2:]))
