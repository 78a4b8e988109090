"""FedRes's step and exploration period against the theorems' formulas."""

import numpy as np
import pytest

from mainstem.errors import BadParameter
from mainstem.rules import fedres_convex, fedres_exploration

WORLD = {"norm": 3.0, "noise": 0.5, "smoothness": 2.0, "gradient": 1.5}


def rate(step):
    return step.rate((), None, 1)[0]


@pytest.mark.parametrize(("steps", "tau"), [(10, 1), (10**6, 1), (10**4, 50), (10**9, 1)])
def test_the_step_is_the_smaller_of_the_two_of_theorem_2(steps, tau):
    clients = 7
    statistical = np.sqrt(3.0 / (steps * clients * 0.5))
    delayed = np.cbrt(3.0 / (2.0 * clients**3 * 1.5**2 * tau**2 * steps))
    found = rate(fedres_convex(steps, clients=clients, round_trip=tau, **WORLD))
    assert found == pytest.approx(min(statistical, delayed))


def test_delay_costs_nothing_once_the_run_is_long():
    """The statistical term falls faster with the steps: T^(-1/2) against T^(-1/3)."""
    short, long = (
        [rate(fedres_convex(T, clients=2, round_trip=tau, **WORLD)) for tau in (1, 9)]
        for T in (9, 10**9)
    )
    assert short[0] > short[1]
    assert long[0] == long[1]


@pytest.mark.parametrize("steps", [1, 10**3, 10**6, 10**9])
def test_the_period_is_the_smallest_of_the_three_of_theorem_3(steps):
    clients, actions, radius = 20, 5, 2.0
    terms = (
        (clients * steps / (actions**4 * 3.0 * 0.5)) ** (1 / 5),
        steps ** (1 / 4) / (actions**6 * 2.0 * radius**4 * 1.5**2) ** (1 / 8),
        steps ** (1 / 3) / (actions**2 * radius * 1.5) ** (1 / 3),
    )
    found = fedres_exploration(steps, clients=clients, actions=actions, radius=radius, **WORLD)
    assert found == max(1, int(min(terms)))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("steps", 0, "an integer of at least 1, got 0"),
        ("clients", 1.5, "an integer of at least 1, got 1.5"),
        *[(name, 0.0, "above 0, got 0.0") for name in WORLD],
        ("round_trip", 0, "an integer of at least 1, got 0"),
        ("actions", 1, "an integer of at least 2, got 1"),
        ("radius", -1.0, "above 0, got -1.0"),
    ],
)
def test_refusals(name, value, message):
    common = {"steps": 10, "clients": 3} | WORLD
    for build, more in (
        (fedres_convex, {"round_trip": 1}),
        (fedres_exploration, {"actions": 2, "radius": 1.0}),
    ):
        if name in common | more:
            with pytest.raises(BadParameter, match=f"{build.__name__}: {name} must be {message}"):
                build(**(common | more | {name: value}))
