"""Lockstep equals the simulation: five processes, a hub and a real NATS server."""

import secrets

import pytest

from mainstem.spec import plain
from tests.contract.cases import CASES

pytestmark = pytest.mark.slow  # real processes

CLIENTS = 5
DIGITS = {
    "problem": {"name": "softmax", "features": 64, "classes": 10},
    "stream": {"name": "digits", "clients": CLIENTS},
}
QUANTISED = {"name": "ofediq", "step": 0.1, "rate": 0.5, "period": 2, "levels": 3, "blocks": 14}


def experiment(algorithm, world=DIGITS, *, steps=200, dtype="float64", **rules):
    federate = {
        "run": f"test-{secrets.token_hex(8)}",  # tests may share a NATS server
        "clients": CLIENTS,
        "pace": "lockstep",
        "dtype": dtype,
        "steps": steps,
        "seed": 3,
    }
    return {**world, "algorithm": algorithm, "federate": federate | rules}


def lived(made):
    """The largest difference between the hub's last model and the simulation's."""
    hub = made.hub()
    clients = [made.client(str(k)) for k in range(CLIENTS)]
    assert [client.wait(300) for client in clients] == [0] * CLIENTS
    assert hub.wait(30) == 0
    return abs(made.model() - made.simulated()).max()


def test_five_processes_equal_the_simulation(processes):
    assert lived(processes(experiment(QUANTISED))) < 1e-9


# tests/federate/test_equal.py has every algorithm. What five processes add to it, programs compiled and numbers
# drawn apart, depends on what is sent: a case of each kind.
SENT = (
    "fedogd error feedback",  # gradients, and what a codec left of them
    "fedomd rounded broadcasts",  # dual variables; the hub rounds too
    "dynamic_fedavg periods",  # models after epochs
    "fedres_erm",  # residuals, which all receive
    "guarded samples",  # what a guard lets through
)


@pytest.mark.parametrize(
    ("name", "dtype", "tolerance"),
    [*((name, "float64", 1e-9) for name in SENT), ("fedogd", "float32", 1e-4)],
)
def test_so_they_do_for_each_kind_of_message(name, dtype, tolerance, processes):
    case = CASES[name]
    world = {"problem": plain(case.world(CLIENTS).problem), "case": name}
    assert lived(processes(experiment(plain(case.algorithm), world, dtype=dtype))) < tolerance
