"""Step-size rules against their formulas."""

import jax
import numpy as np
import pytest

from mainstem.errors import BadParameter
from mainstem.parts import adagrad, constant, inverse_sqrt, inverse_time
from mainstem.parts.step import as_step

T = np.array([1.0, 2.0, 4.0, 100.0])


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (constant(0.3), [0.3, 0.3, 0.3, 0.3]),
        (inverse_sqrt(0.5), 0.5 / np.sqrt(T)),
        (inverse_time(4.0), 0.5 / T),  # 2 / (sigma t)
        (inverse_time(4.0, shift=10), 0.5 / (T + 10)),
    ],
    ids=["constant", "inverse_sqrt", "inverse_time", "shifted"],
)
def test_schedules_are_their_formulas_and_have_no_state(rule, expected):
    assert rule.schedule
    assert not rule.coordinatewise
    assert rule.init(np.zeros(3)) == ()
    with jax.enable_x64(True):
        rates = [rule.rate((), None, t)[0] for t in T.astype(int)]
    np.testing.assert_allclose(rates, expected, rtol=1e-14)


def test_adagrad_is_scale_over_the_root_of_the_summed_squares():
    rule = adagrad(0.3, floor=0.01)
    gradients = np.random.default_rng(0).normal(size=(5, 3))
    with jax.enable_x64(True):
        state = rule.init(np.zeros(3))
        for t, gradient in enumerate(gradients, start=1):
            rate, state = rule.rate(state, gradient, t)
            squares = np.sum(gradients[:t] ** 2, axis=0)
            np.testing.assert_allclose(rate, 0.3 / np.sqrt(0.01 + squares), rtol=1e-14)
    assert rule.coordinatewise
    assert not rule.schedule


def test_a_number_is_a_constant_step_and_a_step_is_itself():
    rule = inverse_sqrt(1.0)
    assert as_step("owner", "step", rule) is rule
    assert as_step("owner", "step", 0.25).rate((), None, 7)[0] == 0.25
    for wrong in (0, -1, "fast", None, float("nan")):
        with pytest.raises(BadParameter, match="owner: step must be"):
            as_step("owner", "step", wrong)
