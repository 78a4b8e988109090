"""A real NATS server for the tests, and sites that are cleaned up."""

import pytest

from mainstem.engines.federate.broker import Private
from tests.federate.processes import Site


@pytest.fixture
def broker(tmp_path):
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
