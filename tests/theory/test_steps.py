"""The steps that theorems take against the theorems' formulas."""

import inspect

import numpy as np
import pytest

from mainstem import experiment, spec, theory
from mainstem.cli.bounds import CONSTANTS
from mainstem.errors import BadParameter
from mainstem.theory import fedres_convex, fedres_exploration

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


# --- the other rules -----------------------------------------------------------------------------


def test_fedomd_rules():
    assert rate(theory.fedomd_convex(45, period=4, lipschitz=2.0, divergence=9.0)) == pytest.approx(
        3 / (2 * np.sqrt(5 * 4 * 45))
    )
    falling = theory.fedomd_strongly_convex(0.5)
    assert [float(falling.rate((), None, t)[0]) for t in (1, 4)] == [2.0, 0.5]


@pytest.mark.parametrize("period", [1, 4])
def test_fedsea_convex_is_where_the_bound_is_least(period):
    world = {"clients": 5, "smoothness": 2.0, "distance": 1.5, "noise": 3.0, "period": period}
    world |= {"spatial": 1.0, "temporal": 0.2}
    found = rate(theory.fedsea_convex(5000, **world))
    here, less, more = (
        float(theory.fedsea_theorem_1(5000, step=found * by, **world)) for by in (1, 0.98, 1.02)
    )
    assert here <= less
    assert here <= more


def test_fedsea_convex_stops_at_the_limit():
    step = rate(
        theory.fedsea_convex(3, clients=5, smoothness=2.0, distance=9.0, noise=0.1, period=3)
    )
    assert step == pytest.approx(1 / (4 * np.sqrt(6) * 2 * 2))


def test_fedsea_strongly_convex_is_just_allowed():
    rule = theory.fedsea_strongly_convex(0.5, smoothness=2.0, period=3)
    shift = 2 / (0.5 * float(rule.rate((), None, 1.0)[0])) - 1
    world = {"clients": 3, "period": 3, "smoothness": 2.0, "curvature": 0.5, "distance": 1.0}
    world |= {"noise": 1.0, "spatial": 0.0, "temporal": 0.0}
    theory.fedsea_theorem_2(10, shift=shift + 1e-6, **world)
    with pytest.raises(BadParameter, match="shift must be at least"):
        theory.fedsea_theorem_2(10, shift=0.99 * shift, **world)
    assert float(theory.fedsea_printed(0.5).rate((), None, 1.0)[0]) == 4.0


def test_the_longest_gap_is_at_least_one():
    assert theory.fedsea_period(100, 1000) == 1
    assert theory.fedsea_period(10**8, 1) == 100


def test_ofediq_convex_is_corollary_1_inside_the_condition():
    known = {"clients": 10, "smoothness": 2.0, "distance": 3.0, "variance": 0.5, "rate": 0.5}
    assert rate(theory.ofediq_convex(10**6, **known)) == pytest.approx(
        np.sqrt(0.5 * 9 / (2 * 0.5 * 10**6))
    )
    assert rate(theory.ofediq_convex(1, **known)) == pytest.approx(0.999 * 0.5 / (2 * 2.0))
    more = {"period": 4, "levels": 2, "blocks": 2, "parameters": 32}
    short = rate(theory.ofediq_convex(4, **known, **more))
    rounding = theory.rounding_variance(32, 2, 2)
    theory.ofediq_theorem_2(4, period=4, step=short, rounding=rounding, **known)


def test_dynamic_fedavg_drift_balances():
    assert rate(theory.dynamic_fedavg_drift(noise=3.0, disagreement=1.0, drift=0.04)) == 0.1
    with pytest.raises(BadParameter, match="noise must be above 0, or disagreement"):
        theory.dynamic_fedavg_drift(noise=0, disagreement=0, drift=1)


def in_a_file(step):
    """The step of an algorithm in an experiment file."""
    made = experiment.build(
        {
            "problem": {"name": "quadratic"},
            "stream": {"name": "alternating", "clients": 2},
            "algorithm": {"name": "fedomd", "step": step},
        }
    )
    return made.algorithms[0].step


@pytest.mark.parametrize("name", theory.STEPS)
def test_every_step_can_be_asked_for_in_a_file_and_written_down(name):
    rule = getattr(theory, name)
    given = {key: CONSTANTS[key] for key in inspect.signature(rule).parameters}
    step = rule(**given)
    assert in_a_file({"name": name, **given}) == step
    assert in_a_file(spec.plain(step)) == step
    assert in_a_file(spec.table(step)) == step
