"""The NATS server is gone: its hub says so, and ends when it is asked to."""

import signal
import time

import pytest

from tests.federate.clusters import STORED, Server, ports
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
    assert hub.wait(20) == 130
    log = (made.folder / "hub.log").read_text()
    assert log.count("the connection to the NATS server is lost") == 1
    assert "ended while the NATS server did not answer" in log
    assert '"state": "disconnected"' in log
    assert (made.folder / "hub" / "model.npz").exists()
    assert "Traceback" not in log
    for client in clients:
        client.kill()
