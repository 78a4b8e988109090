"""What contradicts a theorem's assumptions is refused with the condition that fails."""

import json

import pytest

from mainstem import theory
from mainstem.cli.bounds import bounds
from mainstem.errors import BadParameter, MainstemError
from tests.theory.by_hand import CASES


def print_bounds(name=None, **changes):
    """Prints the bound of one theorem, or of all, with these constants changed."""
    bounds(name, [f"{key}={given}" for key, given in changes.items()], json=True)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("fedomd_theorem_1", {"lipschitz": 0.0}, "lipschitz must be above 0, got 0.0"),
        ("fedomd_theorem_1", {"step": -1.0}, "step must be above 0, got -1.0"),
        ("fedomd_theorem_1", {"period": 0}, "period must be an integer of at least 1, got 0"),
        ("fedomd_theorem_2", {"curvature": -0.5}, "curvature must be above 0, got -0.5"),
        ("fedomd_theorem_3", {"risk": 1.0}, r"risk must lie in \(0, 1\), got 1.0"),
        ("fedsea_theorem_1", {"step": 0.05}, r"step must be at most 0.0255155 = min\(1 / \(8 L\)"),
        ("fedsea_theorem_1", {"noise": -1.0}, "noise must be at least 0, got -1.0"),
        (
            "fedsea_theorem_2",
            {"curvature": 2.0, "shift": 90},
            "curvature must be at most the smooth",
        ),
        ("fedsea_theorem_2", {"shift": 1.0}, "shift must be at least 164.9.* <= 1/2, got 1.0"),
        ("ofediq_theorem_1", {"rate": 1.5}, r"rate must lie in \(0, 1\], got 1.5"),
        (
            "ofediq_theorem_1",
            {"step": 0.05},
            r"step must be below 0.05 = rate_min / \(2 smoothness\)",
        ),
        ("ofediq_theorem_1", {"rate": [0.1, 0.2]}, "rate must be one number or 20 of them"),
        ("ofediq_theorem_2", {"steps": 7, "period": 2}, "steps must be a multiple of the period 2"),
        ("ofediq_theorem_2", {"rounding": -1.0}, "rounding must be at least 0"),
        (
            "ofediq_corollary_1",
            {"steps": 1},
            "steps must be so many that the best step .* is below",
        ),
        (
            "ofediq_alpha",
            {"blocks": 651},
            "blocks must be an integer of at least 1 and at most 650",
        ),
        ("ofediq_equation_15", {"rate": 0.0}, r"rate must lie in \(0, 1\]"),
        ("dynamic_fedavg_lemma_1", {"participants": 21}, "participants must be .* at most 20"),
        ("dynamic_fedavg_lemma_1", {"batch": 101}, "batch must be at most what is held"),
        ("dynamic_fedavg_theorem_1", {"step": 2.0}, "step must be below 2 = 1 / curvature"),
        ("fedres_theorem_1", {"own": 0}, "own must be whole numbers of at least 1"),
        ("fedres_theorem_2", {"radius": -1.0}, "radius must be above 0"),
        ("fedres_theorem_3", {"actions": 1}, "actions must be an integer of at least 2"),
    ],
)
def test_refused(name, changes, message):
    with pytest.raises(BadParameter, match=f"{name}: {message}"):
        print_bounds(name, **changes)


def test_the_issues_example_word_for_word():
    known = {"clients": 1000, "rate": 0.1, "smoothness": 2.0, "distance": 1.0, "variance": 1.0}
    with pytest.raises(BadParameter) as refusal:
        theory.ofediq_theorem_2(10, period=1, step=0.1, rounding=0.0, **known)
    wanted = "ofediq_theorem_2: step must be below 0.0125 = rate_min / (4 smoothness period (1 + "
    assert str(refusal.value).startswith(wanted)
    assert str(refusal.value).endswith("got 0.1")


def test_every_theorem_has_a_line_and_the_default_world_is_inside_all_assumptions(capsys):
    print_bounds()
    lines = json.loads(capsys.readouterr().out)
    named = [line["theorem"] for line in lines]
    assert len(named) == len(set(named))
    assert set(named) == {case.function for case in CASES} | {"ofediq_section_4_2_1"}
    assert {line["kind"] for line in lines} == {"guarantee", "rate", "comparison"}


def test_a_refusal_among_many_is_a_line_and_not_an_end(capsys):
    print_bounds(step=0.04)
    lines = {line["theorem"]: line for line in json.loads(capsys.readouterr().out)}
    assert lines["fedsea_theorem_1"]["kind"] == "refused"
    assert "step must be at most" in lines["fedsea_theorem_1"]["text"]
    assert lines["ofediq_theorem_1"]["kind"] == "guarantee"


def test_a_rate_has_no_value_before_it_is_fitted():
    rate = theory.Rate("Some theorem", "regret", [1, 2], {"a": [1.0, 2.0]})
    with pytest.raises(MainstemError, match="holds up to a constant only"):
        _ = rate.value


def test_several_horizons_at_once():
    several = theory.fedomd_theorem_2([1, 10, 100], period=2, lipschitz=1.0, curvature=0.5)
    each = [
        theory.fedomd_theorem_2(t, period=2, lipschitz=1.0, curvature=0.5) for t in (1, 10, 100)
    ]
    assert several.value.tolist() == [float(bound) for bound in each]
