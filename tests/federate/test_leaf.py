"""A leaf node at a site: a client that knows only the server beside it takes part, and outlives its loss."""

import time

import pytest

from tests.federate.servers import STORED, Server, ports
from tests.federate.test_kills import finished, small

pytestmark = pytest.mark.slow  # real processes

STEPS = 600
DOMAIN = STORED.replace("jetstream {{", "jetstream {{\n  domain: hub")
DOOR = """\
leafnodes {{
  listen: "127.0.0.1:{door}"
}}
"""
LEAF = """\
server_name: {name}
listen: "127.0.0.1:{port}"
max_payload: 8MB
leafnodes {{
  remotes: [{{ url: "nats-leaf://127.0.0.1:{door}" }}]
}}
mappings {{
  "$JS.API.>": "$JS.hub.API.>"
}}
"""
STORE = """\
jetstream {{
  store_dir: {store}
  domain: site
}}
"""


@pytest.fixture(params=["", STORE], ids=["storing nothing", "with a store of its own"])
def servers(request, tmp_path):
    """The hub's server, and one at a site that is its leaf."""
    first, second, door = ports(3)
    made = [
        Server(tmp_path / "server", "server", first, DOMAIN + DOOR, door=door),
        Server(tmp_path / "leaf", "leaf", second, LEAF + request.param, door=door),
    ]
    yield made
    for server in made:
        server.kill()


def test_a_client_at_a_leaf_that_is_killed_and_comes_back(site, servers):
    server, leaf = servers
    made = site(small(steps=STEPS))
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
