"""Codecs of broadcasts: the server's model is exact, all clients decode the same one, and bits are counted."""

import numpy as np
import pytest

import mainstem as ms
from mainstem import parts
from tests.algorithms.table import agrees, regression

T, K, D, ETA = 30, 4, 3, 0.05
WORLD = regression(T, K, D)


def loop():
    """FedOGD, whose clients decide with a rounded copy of the server's model."""
    w, models, server = np.zeros(D), [], [np.zeros(D)]
    got = w
    for t in range(1, T + 1):
        models.append([got] * K)
        w = w - ETA / K * sum(WORLD.gradient(got, k, t) for k in range(K))
        got = w.astype(np.float16).astype(float)
        server.append(w)
    return {"models": np.array(models), "server": np.array(server)}


@pytest.mark.parametrize("plain", [False, True])
def test_it_is_the_loop(plain):
    algorithm = ms.fedogd(ETA, downlink=parts.half())
    run = ms.simulate(algorithm, WORLD.problem, WORLD.stream, steps=T, dtype="float64", plain=plain)
    agrees(run, loop(), WORLD.loss)
    rounded = loop()["server"][-1].astype(np.float16)
    np.testing.assert_array_equal(run.client_models, np.tile(rounded, (K, 1)))
    assert run.downlink_bits[-1] == T * K * 16 * D
    assert run.uplink_saving == 0


def test_a_bounded_domain_is_refused():
    mirror = parts.euclidean(parts.box(-1, 1))
    algorithm = ms.fedomd(0.1, mirror=mirror, downlink=parts.half())
    message = r"fedomd: downlink must be plain\(\) on the box"
    with pytest.raises(ms.MainstemError, match=message):
        ms.simulate(algorithm, WORLD.problem, WORLD.stream, steps=T)


@pytest.mark.parametrize("algorithm", [ms.fedogd, ms.fedsea])
def test_theorems_are_for_plain_broadcasts(algorithm):
    run = ms.simulate(algorithm(0.01, downlink=parts.half()), WORLD.problem, WORLD.stream, steps=T)
    with pytest.raises(ms.MainstemError, match="the theorem is for downlink=plain"):
        run.bound()


def test_a_codec_that_does_not_fit_is_refused():
    algorithm = ms.fedogd(0.1, downlink=parts.top_k(D + 1))
    with pytest.raises(ms.MainstemError, match="top_k: count must be at most the 3 parameters"):
        ms.simulate(algorithm, WORLD.problem, WORLD.stream, steps=T)


def test_plain_is_the_default():
    assert ms.fedogd(0.1, downlink=parts.plain()) == ms.fedogd(0.1)
