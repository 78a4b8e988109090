"""Limits: operations and bytes against the number of parameters, and the larger of the two times."""

import pytest

from benchmarks import limits
from benchmarks.machine import PEAKS

H200 = "NVIDIA H200"


@pytest.mark.parametrize(
    ("layers", "parameters"),
    [(limits.CNN, 34_826), (limits.MLP, 4_609), (limits.CIFAR, 1_626_442)],
)
def test_the_layers_are_those_of_the_networks(layers, parameters):
    assert limits.parameters(layers) == parameters


def test_training_takes_thrice_the_products_but_for_the_first_layer():
    one, two = limits.Layer(2, 3, positions=5), limits.Layer(4, 1)
    assert limits.forward((one, two)) == 2 * 2 * 3 * 5 + 2 * 4
    assert limits.training((one, two)) == 2 * one.flops + 3 * two.flops


def test_the_limit_is_the_larger_time_and_names_it():
    peaks = PEAKS[H200]
    cost = limits.Cost(flops=2 * peaks.flops["tf32"], bytes=peaks.bandwidth, precision="tf32")
    assert limits.limit(cost, H200) == (2.0, "tf32 operations")
    assert limits.limit(cost._replace(bytes=3 * peaks.bandwidth), H200) == (3.0, "bandwidth")


def test_there_is_no_limit_for_a_device_whose_peaks_are_not_known():
    assert limits.limit(limits.fedomd(20), "cpu") is None


def test_who_is_not_heard_costs_no_gradient():
    whole, none = (limits.ofediq(limits.CNN, 1000, 785, rate) for rate in (1.0, 0.0))
    assert whole.flops == limits.fedogd(limits.CNN, 1000, 785).flops
    assert none.flops == 1000 * limits.forward(limits.CNN)
