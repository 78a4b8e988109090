"""A leaf node: a client that connects only to the leaf participates, and continues after the leaf was lost."""

import time

import pytest

from tests.federate.clusters import STORED, Server, ports
from tests.federate.test_kills import finished, small

pytestmark = pytest.mark.slow  # real processes

STEPS = 600
DOMAIN = STORED.replace("jetstream {{", "jetstream {{\n  domain: hub")
LEAFNODES = """\
leafnodes {{
  listen: "127.0.0.1:{leaf_port}"
}}
"""
LEAF = """\
server_name: {name}
listen: "127.0.0.1:{port}"
max_payload: 8MB
leafnodes {{
  remotes: [{{ url: "nats-leaf://127.0.0.1:{leaf_port}" }}]
}}
mappings {{
  "$JS.API.>": "$JS.hub.API.>"
}}
"""
STORE = """\
jetstream {{
  store_dir: {store}
  domain: leaf
}}
"""


@pytest.fixture(params=["", STORE], ids=["storing nothing", "with a store of its own"])
def servers(request, tmp_path):
    """The hub's server, and a leaf node of it."""
    first, second, leaf_port = ports(3)
    made = [
        Server(tmp_path / "server", "server", first, DOMAIN + LEAFNODES, leaf_port=leaf_port),
        Server(tmp_path / "leaf", "leaf", second, LEAF + request.param, leaf_port=leaf_port),
    ]
    yield made
    for server in made:
        server.kill()


def test_a_client_at_a_leaf_that_is_killed_and_comes_back(processes, servers):
    server, leaf = servers
    made = processes(small(steps=STEPS))
    hub = made.hub("--url", server.url)
    clients = [made.client("0"), made.client("1", url=leaf.url)]
    made.reached(STEPS // 3)
    leaf.kill()
    time.sleep(1.0)
    cut_off = made.step()
    assert cut_off < STEPS, "the run was over before"
    time.sleep(1.0)
    assert made.step() == cut_off  # in lockstep all wait for the one that is cut off
    leaf.start()
    finished(made, hub, clients)
