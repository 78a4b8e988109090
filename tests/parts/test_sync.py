"""Syncs: after which steps the clients and the server exchange messages."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainstem.errors import BadParameter
from mainstem.parts import after_steps, every, never

STEPS = np.arange(1, 61)


def times(sync):
    return STEPS[sync.after(STEPS)].tolist()


@settings(max_examples=50, derandomize=True)
@given(st.integers(1, 20), st.data())
def test_every_syncs_at_its_offset_and_then_each_period(period, data):
    offset = data.draw(st.integers(0, period - 1))
    sync = every(period, offset)
    assert times(sync) == [t for t in range(1, 61) if t % period == offset]
    assert (sync.period, sync.offset) == (period, offset)


def test_fedseas_two_readings():
    """Averaging after tau, 2 tau, ... (the proof), or after 1, tau + 1, ... (Algorithm 1)."""
    assert times(every(20)) == [20, 40, 60]
    assert times(every(20, offset=1)) == [1, 21, 41]


@settings(max_examples=30, derandomize=True)
@given(st.lists(st.integers(1, 60), min_size=1))
def test_any_set_of_steps(wanted):
    assert times(after_steps(wanted)) == sorted(set(wanted))
    assert after_steps(wanted).period is None


@pytest.mark.parametrize("kind", [set, tuple, np.array, iter])
def test_steps_may_come_in_any_container(kind):
    assert times(after_steps(kind([3, 7]))) == [3, 7]


def test_never_is_never():
    assert times(never()) == []
    assert never().after(np.int64(5)).shape == ()


@pytest.mark.parametrize("steps", [5, [0], [1.5], [], "ab", [True]])
def test_steps_that_are_none_are_refused(steps):
    with pytest.raises(BadParameter, match="after_steps: steps must"):
        after_steps(steps)
