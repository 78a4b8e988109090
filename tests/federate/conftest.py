"""A real NATS server for the tests, and federations of processes that are cleaned up."""

import pytest

from mainstem.engines.federate.security.setup import secure
from mainstem.engines.federate.transport.private_server import PrivateServer
from tests.federate.processes import Federation
from tests.federate.secured import free_port, serving


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory):
    """One server for all tests of a worker; each run on it has a unique name."""
    server = PrivateServer(tmp_path_factory.mktemp("nats_server") / "nats_server", sync="2m")
    yield server
    server.stop()


@pytest.fixture
def own_server(tmp_path):
    """A server for one test."""
    server = PrivateServer(tmp_path / "nats_server", sync="2m")
    yield server
    server.stop()


@pytest.fixture
def processes(tmp_path):
    """Makes a federation; its processes end with the test."""
    made = []

    def build(content, name="federation"):
        made.append(Federation(tmp_path / name, content))
        return made[-1]

    yield build
    for each in made:
        each.stop()


@pytest.fixture(scope="module")
def secured_server(tmp_path_factory):
    """(folder, url) of a server with the runs r (clients a and b) and other (client c)."""
    folder = tmp_path_factory.mktemp("secure") / "setup"
    port = free_port()
    secure(folder, clients=["a", "b"], runs=["r"], port=port)
    secure(folder, clients=["c"], runs=["other"])
    with serving(folder, port, "-c", "server.conf"):
        yield folder, f"tls://127.0.0.1:{port}"
