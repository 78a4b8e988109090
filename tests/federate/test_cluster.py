"""A cluster of three servers: one that is lost in the middle of a run costs no update and doubles none."""

import pytest

from tests.federate.clusters import Cluster
from tests.federate.test_kills import finished, small

pytestmark = pytest.mark.slow  # real processes

STEPS = 600


@pytest.fixture
def cluster(tmp_path):
    """Three servers for one test."""
    made = Cluster(tmp_path / "cluster")
    yield made
    made.stop()


def running(processes, cluster):
    """A hub and two clients at work on the cluster, every stream in three copies."""
    made = processes(small(steps=STEPS))
    hub = made.hub("--url", cluster.url, "--replicas", "3")
    return made, hub, [made.client(str(k)) for k in range(2)]


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_a_server_killed_in_the_middle_costs_nothing(role, processes, cluster):
    made, hub, clients = running(processes, cluster)
    made.reached(STEPS // 3)
    leader, followers = cluster.roles(made.rules["run"])
    cluster.servers[leader if role == "leader" else followers[0]].kill()
    assert made.step() < STEPS, "the run was over before"
    finished(made, hub, clients)


def test_servers_go_and_come_back_in_turn(processes, cluster):
    made, hub, clients = running(processes, cluster)
    for n, name in enumerate(cluster.servers):
        made.reached(STEPS * (n + 1) // 5)
        cluster.servers[name].kill()
        made.reached(made.step() + STEPS // 20)  # the other two go on
        cluster.servers[name].start()
        cluster.whole()
    assert made.step() < STEPS, "the run was over before"
    finished(made, hub, clients)
