"""Evidence: what numbers show, and with which confidence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.papers import evidence
from mainstem.papers.evidence import FAILS, HOLDS, UNDECIDED, Evidence, verdict


def judged(*margins):
    return verdict(Evidence("", tuple(np.asarray(each, float) for each in margins)))


def test_a_claim_needs_all_its_margins_and_falls_with_one():
    sure, unsure, wrong = [1, 1.1, 0.9, 1], [1, -1, 2, -1.5], [-1, -1.1, -0.9, -1]
    assert judged(sure, sure) == HOLDS
    assert judged(sure, unsure) == UNDECIDED
    assert judged(sure, unsure, wrong) == FAILS


def test_a_single_number_is_exact():
    assert judged([0.1]) == HOLDS
    assert judged([-0.1]) == FAILS
    assert judged([0.0]) == FAILS  # not above zero


def test_margins_that_are_not_numbers_do_not_hold():
    assert judged([1.0, np.nan, 1.0]) == UNDECIDED
    assert judged([np.nan]) == UNDECIDED


def test_the_interval_is_student_s_with_99_percent():
    # for four samples t_{0.995, 3} = 5.8409, by the table; standard error 1/2 for a deviation of 1
    samples = np.array([-1, 1, -1, 1]) * np.sqrt(3 / 4)
    mean, half = evidence.interval(samples)
    assert mean == pytest.approx(0)
    assert half == pytest.approx(5.8409 / 2, rel=1e-4)


def test_margins_near_zero_are_called_wrongly_once_in_a_hundred():
    draw = np.random.default_rng(0)
    decided = sum(judged(draw.normal(size=10)) != UNDECIDED for _ in range(3000))
    assert 10 < decided < 55  # 30 expected, standard deviation 5.4


def test_sides_are_compared_seed_by_seed():
    gain = np.array([1, 1.1, 0.9, 1])
    luck = np.array([0.0, 10.0, 20.0, 30.0])  # the spread over seeds is larger than the difference
    assert verdict(evidence.rising({"a": luck, "b": luck + gain})) == HOLDS
    assert verdict(evidence.falling({"b": luck + gain, "a": luck})) == HOLDS
    assert verdict(evidence.rising({"b": luck + gain, "a": luck})) == FAILS


def test_near_allows_a_distance_either_way():
    a, b = np.array([1.0, 1.01, 0.99]), np.array([1.05, 1.06, 1.04])
    assert verdict(evidence.near({"a": a, "b": b}, 0.1)) == HOLDS
    assert verdict(evidence.near({"b": b, "a": a}, 0.1)) == HOLDS
    assert verdict(evidence.near({"a": a, "b": b}, 0.01)) == FAILS


def test_not_below_allows_a_distance_one_way_only():
    a, b = np.array([1.0, 1.01, 0.99]), np.array([1.05, 1.06, 1.04])
    assert verdict(evidence.not_below({"b": b, "a": a}, 0.0)) == HOLDS
    assert verdict(evidence.not_below({"a": a, "b": b}, 0.01)) == FAILS
    assert verdict(evidence.not_below({"a": a, "b": b}, 0.1)) == HOLDS


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20))
def test_pseudo_values_of_a_mean_are_the_values(values):
    values = np.array(values)
    np.testing.assert_allclose(evidence.jackknife(np.mean, values), values, atol=1e-9)


def test_the_jackknife_knows_the_spread_of_a_logarithm():
    # log of a mean: its standard error is that of the mean over the mean, for many seeds
    draw = np.random.default_rng(1).exponential(size=4000)
    samples = evidence.jackknife(lambda v: float(np.log(v.mean())), draw[:400])
    error = samples.std(ddof=1) / np.sqrt(400)
    assert error == pytest.approx(draw[:400].std(ddof=1) / draw[:400].mean() / 20, rel=0.05)


def test_exponents_and_fits_find_what_was_put_in():
    at = np.array([10, 20, 40, 80, 160])
    noise = 1 + 0.01 * np.random.default_rng(2).normal(size=(30, 5))
    root = evidence.exponent(at, np.sqrt(at) * noise)
    assert verdict(evidence.between("exponent", root, 0.25, 0.75)) == HOLDS
    assert verdict(evidence.between("exponent", root, 0.75, 1.25)) == FAILS
    assert verdict(evidence.logarithmic("log", at, np.log(at) * noise)) == HOLDS
    assert verdict(evidence.logarithmic("root", at, np.sqrt(at) * noise)) == FAILS


@pytest.mark.parametrize(
    ("samples", "text"),
    [
        ([0.5151], "0.5151"),
        ([1.0, 1.0], "1"),
        ([19.0, 20.0, 21.0], "20.0 ± 5.7"),
        ([0.95, 0.96, 0.955], "0.955 ± 0.029"),
    ],
)
def test_means_are_shown_to_the_digits_that_count(samples, text):
    assert evidence.shown(np.array(samples)) == text
