"""Networks: which delays are taken, and which are refused."""

import numpy as np
import pytest

from mainstem.errors import BadParameter
from mainstem.parts import network


def test_one_delay_is_everybodys():
    wires = network(up=3, down=[0, 1, 2]).fitted(clients=3, steps=10)
    np.testing.assert_array_equal(wires.up, [3, 3, 3])
    np.testing.assert_array_equal(wires.down, [0, 1, 2])


def test_instant_is_no_delay_at_all():
    assert network().instant
    assert network(up=[0, 0]).instant
    assert not network(down=1).instant
    assert not network(up=[0, 1]).instant


@pytest.mark.parametrize("name", ["up", "down"])
@pytest.mark.parametrize("value", [-1, [0, -1], 1.5, [[1]], [[1], [1, 2]], "slow", None, True])
def test_what_is_no_delay_is_refused_by_name(name, value):
    with pytest.raises(BadParameter, match=f"network: {name} must be whole numbers of at least 0"):
        network(**{name: value})


@pytest.mark.parametrize("name", ["up", "down"])
def test_delays_for_other_clients_or_longer_than_the_run_are_refused(name):
    with pytest.raises(BadParameter, match=f"network: {name} must have one entry for each of 3"):
        network(**{name: [1, 2]}).fitted(clients=3, steps=10)
    with pytest.raises(BadParameter, match=f"network: {name} must be shorter than the run of 10"):
        network(**{name: 10}).fitted(clients=3, steps=10)
    network(**{name: 9}).fitted(clients=3, steps=10)
