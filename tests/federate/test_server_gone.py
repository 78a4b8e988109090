"""The NATS server is gone: its hub says so, and ends when it is asked to."""

import signal
import time

import pytest

from mainstem.engines.federate.security.setup import secure
from tests.federate.clusters import STORED, Server, ports
from tests.federate.secured import free_port, serving
from tests.federate.test_kills import small


@pytest.mark.slow  # real processes
def test_a_hub_without_a_server_says_so_and_ends_on_a_signal(processes, tmp_path):
    server = Server(tmp_path / "server", "one", *ports(1), STORED)
    made = processes(small(steps=100_000))
    hub = made.hub("--url", server.url)
    clients = [made.client(str(k)) for k in range(2)]
    made.reached(5)
    server.kill()
    time.sleep(3)
    hub.send_signal(signal.SIGTERM)
    assert hub.wait(10) == 0
    log = (made.folder / "hub.log").read_text()
    lost = "the connection to the NATS server is lost"
    assert sum(lost in line for line in log.splitlines() if not line.startswith("{")) == 1
    assert "ended while the NATS server did not answer" in log
    assert '"state": "disconnected"' in log
    assert (made.folder / "hub" / "model.safetensors").exists()
    assert "Traceback" not in log
    for client in clients:
        client.kill()


@pytest.mark.slow  # real processes
def test_a_hub_outlives_a_server_with_tls(processes, tmp_path):
    port, folder = free_port(), tmp_path / "setup"
    secure(folder, clients=["0", "1"], runs=["r"], port=port)
    given = small(steps=100_000)
    given["federate"]["run"] = "r"
    made = processes(given)
    words = ("--url", f"tls://127.0.0.1:{port}", "--credentials", str(folder / "hub.creds"))
    log = made.folder / "hub.log"
    with serving(folder, port, "-c", "server.conf"):
        hub = made.hub(*words)
    time.sleep(8)
    assert hub.poll() is None, log.read_text()
    with serving(folder, port, "-c", "server.conf"):
        end = time.monotonic() + 20
        while '"state": "running"' not in log.read_text().splitlines()[-1]:
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.2)
    time.sleep(3)
    begin = time.monotonic()
    hub.send_signal(signal.SIGTERM)
    assert hub.wait(10) == 0, log.read_text()
    assert time.monotonic() - begin < 10
    assert "Traceback" not in log.read_text()
