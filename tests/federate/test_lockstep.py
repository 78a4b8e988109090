"""Lockstep equals the simulation: five processes, a hub and a real NATS server."""

import pytest

pytestmark = pytest.mark.slow  # real processes

CLIENTS = 5
DIGITS = {
    "problem": {"name": "softmax", "features": 64, "classes": 10},
    "stream": {"name": "digits", "clients": CLIENTS},
}
QUANTISED = {"name": "ofediq", "step": 0.1, "rate": 0.5, "period": 2, "levels": 3, "blocks": 14}


def experiment(algorithm, world=DIGITS, *, steps=200, dtype="float64", **rules):
    federate = {
        "run": "test",
        "clients": CLIENTS,
        "pace": "lockstep",
        "dtype": dtype,
        "steps": steps,
        "seed": 3,
    }
    return {**world, "algorithm": algorithm, "federate": federate | rules}


def test_five_processes_equal_the_simulation(site):
    made = site(experiment(QUANTISED))
    hub = made.hub()
    clients = [made.client(str(k)) for k in range(CLIENTS)]
    assert [client.wait(120) for client in clients] == [0] * CLIENTS
    assert hub.wait(30) == 0
    assert abs(made.model() - made.simulated()).max() < 1e-9
