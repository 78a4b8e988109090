"""Processes stopped for a while and connections disturbed: lockstep is undisturbed, the free pace loses nothing.

Every process is real, and each talks to the server through a proxy of its own.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import time

import pytest

from mainstem.engines.federate import control
from tests.federate.clusters import STORED, Cluster, Server, ports
from tests.federate.proxy import Proxy
from tests.federate.test_kills import finished, small

pytestmark = pytest.mark.slow  # real processes

STEPS = 1000
PACES = pytest.mark.parametrize("pace", ["lockstep", "free"])


def world(pace, steps=STEPS):
    content = small(steps=steps)
    content["federate"]["pace"] = pace
    if pace == "free":
        # The other client merges on: what is older than `staleness` merges would be dropped by rule.
        content["federate"] |= {"deadline": 2.0, "staleness": 10**5}
    return content


class Running:
    """A hub and two clients, at these addresses of the server."""

    def __init__(self, made, pace, urls, *options):
        self.made, self.pace, self.urls = made, pace, urls
        self.hub = made.hub("--url", urls[0], *options)
        self.clients = self.joined()

    def joined(self):
        return [self.made.client(str(k), url=self.urls[k + 1]) for k in range(2)]

    def reached(self, step, patience=60):
        self.made.reached(step, patience)
        assert self.made.step() < STEPS, "the run was over before"

    def ended(self, patience=400, logged=True):
        """Waits for the end, and compares what was merged with what was sent, if all merges are `logged`."""
        if self.pace == "lockstep":
            finished(self.made, self.hub, self.clients, patience, logged)
            return
        for client in self.clients:
            assert client.wait(patience) == 0
        for client in self.joined():  # what was pending is sent
            assert client.wait(patience) == 0
        end = time.monotonic() + 30
        while self.made.merged().keys() != self.made.sent().keys() and time.monotonic() < end:
            time.sleep(0.2)
        merged = self.made.merged()
        assert not logged or merged.keys() == self.made.sent().keys()  # nothing is lost
        assert set(merged.values()) == {1}  # nor merged twice
        assert len(merged) > 100  # while the hub is away, clients go on alone
        asyncio.run(control.send_order(self.urls[-1], self.made.rules["run"], "finish"))
        assert self.hub.wait(30) == 0


@pytest.fixture
def server(tmp_path):
    made = Server(tmp_path / "server", "one", *ports(1), STORED)
    yield made
    made.kill()


@pytest.fixture
def proxies(server):
    """Of the hub, and of each client."""
    made = [Proxy(server.port) for _ in range(3)]
    yield made
    for proxy in made:
        proxy.stop()


@pytest.fixture
def run(pace, processes, proxies):
    made = Running(processes(world(pace)), pace, [proxy.url for proxy in proxies])
    made.reached(50)
    return made


@PACES
@pytest.mark.parametrize("seconds", [1, 12, 70])
@pytest.mark.parametrize("who", ["hub", "client", "server"])
def test_a_process_that_stood_still_goes_on(who, seconds, pace, run, server):
    pid = {"hub": run.hub.pid, "client": run.clients[0].pid, "server": server.process.pid}[who]
    os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(pid, signal.SIGCONT)
    run.ended()


@PACES
@pytest.mark.parametrize("whose", [0, 1], ids=["hub", "client"])
def test_a_slow_connection(whose, pace, run, proxies):
    proxies[whose].delay = 0.05
    time.sleep(5)
    proxies[whose].delay, proxies[whose].rate = 0.0, 20_000
    time.sleep(5)
    proxies[whose].rate = float("inf")
    run.ended()


@PACES
def test_connections_that_are_cut_again_and_again(pace, run, proxies):
    for n in range(9):
        proxies[n % 3].cut()
        time.sleep(1.5)
    run.ended()


@PACES
@pytest.mark.parametrize("whose", [0, 1], ids=["hub", "client"])
def test_the_server_is_not_heard_for_a_while_and_then_the_connection_is_reset(
    whose, pace, run, proxies
):
    proxies[whose].withholds = True
    time.sleep(30)
    proxies[whose].cut()
    proxies[whose].withholds = False
    run.ended()


@pytest.fixture
def small_disks(tmp_path):
    """Mounts a small disk at a folder."""
    mounted = []

    def mount(folder, size):
        folder.mkdir(parents=True)
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], check=True
        )
        mounted.append(folder)

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@PACES
@pytest.mark.parametrize("whose", ["hub", "client-0", "server"])
def test_a_disk_that_is_full_for_a_while(whose, pace, processes, small_disks, tmp_path):
    """What was sent is merged, and one line says why it took longer. It takes root to mount the disk."""
    made = processes(world(pace, steps=5 * STEPS))  # it must not end before there is room again
    folder = tmp_path / "server" if whose == "server" else made.folder / whose
    small_disks(folder, "64m" if whose == "server" else "8m")
    server = Server(tmp_path / "server", "one", *ports(1), STORED)
    try:
        run = Running(made, pace, [server.url] * 3)
        run.reached(50)
        filler = folder / "filler"
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        time.sleep(10)
        filler.unlink()
        run.ended(logged=whose != "hub")  # the hub's log of merges is on its disk
        logs = "".join(log.read_text() for log in made.folder.glob("*.log"))
        assert "No space left" in logs or "stores nothing: is its disk full?" in logs
    finally:
        server.kill()


@PACES
def test_a_cluster_without_a_quorum_for_a_minute(pace, processes, tmp_path):
    cluster = Cluster(tmp_path / "cluster")
    try:
        run = Running(processes(world(pace)), pace, [cluster.url] * 3, "--replicas", "3")
        run.reached(50)
        gone = list(cluster.servers.values())[1:]
        for each in gone:
            each.kill()
        time.sleep(60)
        for each in gone:
            each.start()
        run.ended()
    finally:
        cluster.stop()
