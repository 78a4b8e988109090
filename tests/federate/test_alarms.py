"""Every alarm of a hub is raised by its fault, and ends with it.

`held` is in test_loss_watch.py, `client_left_out` in test_guard.py, `server_full` in test_disk_watch.py, and
`client_twice` in test_changes.py. Without faults there is no alarm: `make soak`.
"""

import asyncio
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from mainstem.engines.federate.hub import health, presence
from mainstem.engines.federate.hub import hub as hubs
from mainstem.engines.federate.hub.hub import Hub
from mainstem.engines.federate.protocol.heartbeats import ClientHeartbeat, Position, pack_client
from mainstem.engines.federate.protocol.run_document import parse
from mainstem.engines.federate.protocol.versions import PROTOCOL
from mainstem.engines.federate.security.setup import renew, secure
from mainstem.engines.federate.transport import connection as connections
from tests.federate import secured
from tests.federate.clusters import STORED, Server, ports
from tests.federate.in_process import joined, run_content, serving, until
from tests.federate.processes import ROOT, asked

LINEAR = {"name": "linear", "features": 2, "intercept": False}
FEDOGD = {"name": "fedogd", "step": 0.1}
X, Y = np.array([1.0, 2.0], np.float32), 3.0
WITHIN = 10.0  # seconds after which an operator must see what is wrong


def content(**rules):
    return run_content(FEDOGD, LINEAR, **{"clients": ["a", "b", "c"], "gather": 1} | rules)


def shown(hub):
    return {(each["alarm"], each["client"]) for each in hub.status()["alarms"]}


def test_an_upload_that_nobody_merges(nats_server, monkeypatch):
    monkeypatch.setattr(health, "STANDS_STILL", 0.5)

    async def lived():
        async with (
            serving(nats_server.url, content(gather=2, quorum=2)) as (hub, _),
            await joined(nats_server.url, hub, "a") as one,
            await joined(nats_server.url, hub, "b") as other,
        ):
            await one.learn_one(X, Y)
            await until(lambda: shown(hub) == {("stands_still", "")})
            await other.learn_one(X, Y)
            await until(lambda: not shown(hub))

    asyncio.run(lived())


def test_a_client_that_is_not_heard(nats_server, monkeypatch):
    monkeypatch.setattr(presence, "LOST", 1.0)

    async def lived():
        async with serving(nats_server.url, content()) as (hub, _):
            learner = await joined(nats_server.url, hub, "a")
            await until(lambda: hub.status()["clients"]["a"]["state"] == "present")
            for work in learner.session.uplink._work:  # as if its process stood still
                work.cancel()
            await until(lambda: shown(hub) == {("client_lost", "a")})
            await learner.close()
            await until(lambda: not shown(hub))

    asyncio.run(lived())


def test_a_certificate_that_ends_soon_and_is_renewed(tmp_path, monkeypatch):
    monkeypatch.setattr(hubs, "CERTIFICATE", 0.2)
    port, folder = secured.free_port(), tmp_path / "setup"
    secure(folder, clients=["a"], runs=["r"], port=port, days=10)

    async def lived(server):
        again = functools.partial(
            connections.connect, f"tls://127.0.0.1:{port}", folder / "hub.creds"
        )
        connection = await again()
        hub = Hub(parse(content(run="r", clients=["a"])), connection, connect=again)
        await hub.open()
        serves = asyncio.create_task(hub.serve())
        await until(lambda: shown(hub) == {("certificate_ends", "")})
        assert 9 < hub.status()["certificate_days"] <= 10
        renew(folder, 365)
        server.send_signal(signal.SIGHUP)  # a reload
        await until(lambda: not shown(hub))
        assert 364 < hub.status()["certificate_days"] <= 365
        hub.stop()
        await serves
        await connection.close()

    with secured.serving(folder, port, "-c", "server.conf") as server:
        asyncio.run(lived(server))


def test_a_folder_that_cannot_be_written(nats_server, tmp_path):
    async def lived():
        async with (
            serving(nats_server.url, content(), folder=tmp_path) as (hub, _),
            await joined(nats_server.url, hub, "a") as learner,
        ):
            (place,) = tmp_path.glob("*.state")
            place.unlink()
            place.mkdir()  # nothing can be written there
            await learner.learn_one(X, Y)
            await until(lambda: shown(hub) == {("file_not_written", "")})
            place.rmdir()
            await learner.learn_one(X, Y)
            await until(lambda: not shown(hub))

    asyncio.run(lived())


# --- real processes --------------------------------------------------------------------------------


class Watched:
    """A server, a hub with metrics and two clients, and what an operator sees of them."""

    def __init__(self, made, folder):
        self.made, self.folder = made, folder
        self.server = Server(folder / "server", "one", *ports(1), STORED)
        self.port = secured.free_port()
        self.hub = self.start_hub()
        self.clients = {name: self.join(name) for name in ("a", "b")}
        self.sees(0, lambda seen: seen["connected"] and seen["present"] == 2, 60)

    def start_hub(self):
        metrics = ("--metrics", f"127.0.0.1:{self.port}")
        return self.made.hub("--url", self.server.url, *metrics, "--log", "json")

    def join(self, name, log=None):
        place = str(self.folder / f"site-{log or name}")
        words = ("tests.federate.changing_client", self.server.url, "watched", name, place)
        return self.made.start(*words, log=f"site-{log or name}.log")

    def status(self):
        command = [sys.executable, "-m", "mainstem.cli", "status", self.server.url]
        words = ["--run", "watched", "--json"]
        done = subprocess.run(
            [*command, *words], capture_output=True, text=True, cwd=ROOT, check=False
        )
        return done.returncode, json.loads(done.stdout)[0] if done.stdout else None

    def look(self):
        """What metrics and health check say."""
        base = f"http://127.0.0.1:{self.port}"
        lines = asked(f"{base}/metrics")[1].splitlines()
        values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        on = [key for key, value in values.items() if float(value) == 1.0]
        return {
            "metrics": bool(values),
            "connected": 'mainstem_connected{run="watched"}' in on,
            "present": sum(key.startswith("mainstem_client_present") for key in on),
            "alarms": {key.split('"')[1] for key in on if key.startswith("mainstem_alarm{")},
            "ready": asked(f"{base}/readyz")[0],
            "healthy": asked(f"{base}/healthz")[0],
        }

    def sees(self, code, expected, within=WITHIN, alarm=None):
        """Waits until metrics are as expected and `status` has the exit code and the alarm."""
        end = time.monotonic() + within
        while True:
            looked = self.look()
            if expected(looked) and (alarm is None or alarm in looked["alarms"]):
                found, status = self.status()
                raised = {each["alarm"] for each in status["alarms"]} if status else set()
                if found == code and (alarm is None or status is None or alarm in raised):
                    return status
                looked |= {"code": found, "status": status}
            assert time.monotonic() < end, looked
            time.sleep(0.2)


@pytest.fixture
def watched(processes, tmp_path):
    rules = {"run": "watched", "clients": ["a", "b", "c"], "deadline": 0.2, "strikes": 5}
    given = {"problem": LINEAR, "algorithm": FEDOGD, "federate": rules, "stream": {}}
    made = Watched(processes(given), tmp_path)
    yield made
    made.server.kill()


@pytest.mark.slow
def test_a_hub_that_is_killed(watched):
    watched.hub.kill()
    watched.hub.wait()
    status = watched.sees(4, lambda seen: not seen["metrics"] and seen["healthy"] == 0)
    assert status["state"] == "not answering"
    watched.hub = watched.start_hub()
    watched.sees(0, lambda seen: seen["ready"] == 200 and seen["present"] == 2, 40)


@pytest.mark.slow
def test_a_hub_that_stands_still(watched):
    watched.hub.send_signal(signal.SIGSTOP)
    end = time.monotonic() + WITHIN
    while watched.status()[0] != 4:
        assert time.monotonic() < end
    watched.hub.send_signal(signal.SIGCONT)
    watched.sees(0, lambda seen: seen["ready"] == 200 and seen["present"] == 2, 40)


@pytest.mark.slow
def test_a_server_that_is_lost(watched):
    watched.server.kill()
    watched.sees(
        1, lambda seen: seen["ready"] == 503 and not seen["connected"], alarm="disconnected"
    )
    watched.server.start()
    watched.sees(0, lambda seen: seen["ready"] == 200 and not seen["alarms"], 40)


@pytest.mark.slow
def test_a_store_that_is_lost(watched):
    watched.server.kill()
    shutil.rmtree(watched.folder / "server" / "data")
    watched.server.start()
    status = watched.sees(4, lambda seen: seen["connected"], 20, alarm="store_lost")
    assert status["state"] == "running"


@pytest.mark.slow
def test_a_client_that_is_quarantined(watched):
    async def send():
        connection = await connections.connect(watched.server.url)
        for _ in range(20):
            await connection.publish("ms.watched.up.c", b"nonsense")
        await connection.flush()
        await connection.close()

    asyncio.run(send())
    status = watched.sees(4, lambda seen: seen["connected"], alarm="client_quarantined")
    assert status["clients"]["c"]["state"] == "quarantined"


@pytest.mark.slow
def test_a_client_of_another_build(watched, tmp_path):
    """A copy of this package with another version of the protocol."""
    build = tmp_path / "build"
    shutil.copytree(ROOT / "src" / "mainstem", build / "mainstem")
    source = build / "mainstem/engines/federate/protocol/versions.py"
    text = source.read_text().replace(f"PROTOCOL = {PROTOCOL}", f"PROTOCOL = {PROTOCOL + 1}")
    source.write_text(text)
    command = [sys.executable, "-m", "mainstem.cli", "join", watched.server.url, "--run", "watched"]
    words = [
        "--client",
        "c",
        "--stream",
        str(tmp_path / "stream.csv"),
        "--folder",
        str(tmp_path / "c"),
    ]
    (tmp_path / "stream.csv").write_text("x,z,y\n1,2,3\n")
    done = subprocess.run(
        [*command, *words],
        env=os.environ | {"PYTHONPATH": str(build)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"protocol {PROTOCOL + 1}" in done.stderr
    assert f"protocol {PROTOCOL}" in done.stderr
    watched.sees(4, lambda seen: seen["connected"], alarm="client_version")


@pytest.mark.slow
def test_two_clients_of_one_name(watched):
    watched.join("a", log="a-again")
    watched.sees(4, lambda seen: seen["connected"], alarm="client_twice")
    assert watched.clients["a"].wait(20) == 0  # it yields, by rule
    assert (
        "another process has joined as this client"
        in Path(watched.made.folder / "site-a.log").read_text()
    )


@pytest.mark.slow
def test_a_client_that_is_killed(watched):
    watched.clients["a"].kill()
    watched.sees(4, lambda seen: seen["connected"], 30, alarm="client_lost")


@pytest.mark.slow
def test_a_hub_that_is_stopped(watched):
    watched.hub.send_signal(signal.SIGTERM)
    assert watched.hub.wait(WITHIN) == 0
    code, status = watched.status()
    assert (code, status["state"]) == (4, "stopped")
    assert (watched.made.folder / "hub" / "model.safetensors").exists()
    for line in (watched.made.folder / "hub.log").read_text().splitlines():
        json.loads(line)


def test_a_client_tells_a_hub_that_has_lost_everything(nats_server):
    """It has gone over to the hub's new epoch before it could say where it was."""

    async def lived():
        async with serving(nats_server.url, run_content(FEDOGD, LINEAR)) as (hub, _):
            where = Position(hub.aggregator.epoch, 0, 0)
            beat = pack_client(ClientHeartbeat(where, had=7), hub.document.versions)
            await hub._connection.publish(hub.subjects.heartbeat("0"), beat)
            shown = lambda: hub.status()["alarms"]  # noqa: E731
            await until(shown)
            assert [each["alarm"] for each in shown()] == ["store_lost"]
            assert "was at merge 7" in shown()[0]["text"]
            since = hub._alarms._raised
            before = dict(since)
            await hub._connection.publish(hub.subjects.heartbeat("1"), beat)
            await until(lambda: hub._presence.is_present("1"))
            assert since == before  # once in an epoch

    asyncio.run(lived())
