"""A real NATS server for the tests, and sites that are cleaned up."""

import pytest

from mainstem.engines.federate.broker import Private
from mainstem.engines.federate.secure import secure
from tests.federate.processes import Site
from tests.federate.secured import free_port, serving


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    """One server for all tests of a worker: each run on it has a name of its own."""
    server = Private(tmp_path_factory.mktemp("broker") / "broker", sync="2m")
    yield server
    server.stop()


@pytest.fixture
def own_broker(tmp_path):
    """A server that lives as long as the test."""
    server = Private(tmp_path / "broker", sync="2m")
    yield server
    server.stop()


@pytest.fixture
def site(tmp_path):
    """Makes a site; its processes end with the test."""
    made = []

    def build(content, name="site"):
        made.append(Site(tmp_path / name, content))
        return made[-1]

    yield build
    for each in made:
        each.stop()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """(folder, url) of a server with the runs r (clients a and b) and other (client c)."""
    folder = tmp_path_factory.mktemp("secure") / "setup"
    port = free_port()
    secure(folder, clients=["a", "b"], runs=["r"], port=port)
    secure(folder, clients=["c"], runs=["other"])
    with serving(folder, port, "-c", "server.conf"):
        yield folder, f"tls://127.0.0.1:{port}"
