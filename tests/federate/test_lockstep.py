"""Lockstep equals the simulation: five processes, a hub and a real NATS server."""

import secrets

import pytest

from mainstem.spec import plain
from tests.contract.cases import CASES
from tests.federate.worlds import SYNCING

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


PLAIN = [name for name in SYNCING if CASES[name].algorithm.codec.linear]


@pytest.mark.parametrize(
    ("name", "dtype", "tolerance"),
    [
        *((name, "float64", 1e-9) for name in SYNCING),
        *((name, "float32", 1e-4) for name in PLAIN),  # with others a flipped rounding is a jump
    ],
)
def test_so_they_do_for_every_algorithm_under_contract(name, dtype, tolerance, processes):
    case = CASES[name]
    world = {"problem": plain(case.world(CLIENTS).problem), "case": name}
    assert lived(processes(experiment(plain(case.algorithm), world, dtype=dtype))) < tolerance
