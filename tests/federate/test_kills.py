"""Processes killed at any instant: the trajectory is the undisturbed one, nothing is lost or merged twice."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from tests.federate.clusters import STORED, Server, ports
from tests.federate.test_lockstep import experiment

pytestmark = pytest.mark.slow  # real processes

ALGORITHM = {"name": "ofediq", "step": 0.1, "rate": 0.7, "levels": 3, "blocks": 14}
POINTS = ["hub before store", "hub after store", "hub within broadcast", "hub after broadcast"]
WORLD = {
    "problem": {"name": "softmax", "features": 64, "classes": 10},
    "stream": {"name": "digits", "clients": 2},
}


def small(steps=60):
    return experiment(ALGORITHM, WORLD, steps=steps, clients=2)


def finished(made, hub, clients, patience=120, logged=True):
    for client in clients:
        assert client.wait(patience) == 0
    assert hub.wait(30) == 0
    assert abs(made.model() - made.simulated()).max() < 1e-9
    if not logged:
        return
    merged = made.merged()
    assert merged.keys() == made.sent().keys()  # nothing is lost
    assert set(merged.values()) == {1}  # nor merged twice
    assert len(merged) == 2 * made.rules["steps"]


@pytest.mark.parametrize("point", POINTS)
def test_a_hub_killed_at_a_write_point_goes_on(point, processes, nats_server):
    made = processes(small())
    hub = made.hub("--url", nats_server.url, killed_at=f"{point}:20")
    clients = [made.client(str(k)) for k in range(2)]
    assert hub.wait(60) == -signal.SIGKILL
    hub = made.hub("--url", nats_server.url)
    finished(made, hub, clients)


def test_a_private_server_dies_with_its_hub_and_comes_back_with_it(processes):
    made = processes(small())
    hub = made.hub(killed_at="hub after store:20")
    clients = [made.client(str(k)) for k in range(2)]
    assert hub.wait(60) == -signal.SIGKILL
    hub = made.hub()
    finished(made, hub, clients)


def test_a_private_server_that_is_killed_is_started_again(processes):
    made = processes(small(steps=3000))
    hub = made.hub()
    clients = [made.client(str(k)) for k in range(2)]
    for step in (30, 600):
        made.reached(step)
        (server,) = servers(hub.pid)
        os.kill(server, signal.SIGKILL)
    finished(made, hub, clients)
    assert (made.folder / "hub.log").read_text().count("it is started again") == 2


def servers(pid):
    """The NATS servers among the children of a process, and theirs."""
    path = Path("/proc") / str(pid)
    if (path / "comm").read_text() == "nats-server\n":
        return [pid]
    children = [
        child
        for task in (path / "task").iterdir()
        for child in (task / "children").read_text().split()
    ]
    return [server for child in children for server in servers(int(child))]


@pytest.mark.parametrize("point", ["client after save", "client after listen"])
def test_a_client_killed_goes_on(point, processes, nats_server):
    made = processes(small())
    hub = made.hub("--url", nats_server.url)
    other, broken = made.client("0"), made.client("1", killed_at=f"{point}:20")
    assert broken.wait(60) == -signal.SIGKILL
    finished(made, hub, [other, made.client("1")])


def test_a_hub_killed_at_fifty_random_instants_goes_on(processes, nats_server):
    made, draw = processes(small(steps=6000)), np.random.default_rng(0)
    hub = made.hub("--url", nats_server.url)
    clients = [made.client(str(k)) for k in range(2)]
    killed = 0
    while killed < 50:
        time.sleep(draw.uniform(0.05, 1.0))
        if hub.poll() is not None:
            break
        hub.kill()
        hub.wait()
        killed += 1
        hub = made.hub("--url", nats_server.url)
    assert killed == 50, "the run was over before"
    finished(made, hub, clients, patience=400)


def test_clients_killed_at_random_instants_go_on(processes, nats_server):
    made, draw = processes(small(steps=3000)), np.random.default_rng(1)
    hub = made.hub("--url", nats_server.url)
    clients = {str(k): made.client(str(k)) for k in range(2)}
    for _ in range(20):
        time.sleep(draw.uniform(3.0, 6.0))  # it takes seconds to be there
        name = str(draw.integers(2))
        if clients[name].poll() is None:
            clients[name].kill()
            clients[name].wait()
            clients[name] = made.client(name)
    finished(made, hub, clients.values(), patience=400)


def test_a_server_killed_at_random_instants_and_started_again(processes, tmp_path):
    server = Server(tmp_path / "server", "one", *ports(1), STORED)
    made, draw = processes(small(steps=3000)), np.random.default_rng(2)
    hub = made.hub("--url", server.url)
    clients = [made.client(str(k)) for k in range(2)]
    made.reached(10)
    try:
        for _ in range(10):
            time.sleep(draw.uniform(0.1, 2.0))
            server.kill()
            time.sleep(draw.uniform(0.0, 2.0))
            server.start()
        assert hub.poll() is None, "the run was over before"
        finished(made, hub, clients, patience=300)
    finally:
        server.kill()
